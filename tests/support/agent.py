"""The agent of a server, os-collect-config, as it asks what is deployed to it."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from hub.auth.signature import signed
from tests.support.program import Json

COLLECT = Path(sys.executable).with_name("os-collect-config")
SERVER: Json = {"type": "OS::Heat::DeployedServer", "metadata": {"role": "web"}}
#: An output with the settings of the server's agent.
OUTPUTS: Json = {"agent": {"value": {"get_attr": ["server", "os_collect_config"]}}}


def asking(settings: Json, **changed: str) -> str:
    """The URL that it asks. settings: of its os-collect-config. changed: after it was signed."""
    cfn = settings["cfn"]
    url = urlsplit(cfn["metadata_url"])
    query = {
        "Action": "DescribeStackResource",
        "StackName": cfn["stack_name"],
        "LogicalResourceId": cfn["path"].partition(".")[0],
        "AWSAccessKeyId": cfn["access_key_id"],
        "SignatureVersion": "2",
        "SignatureMethod": "HmacSHA256",
    }
    signature = signed(cfn["secret_access_key"], "GET", url.netloc, url.path, query)
    return f"{cfn['metadata_url']}?{urlencode({**query, 'Signature': signature, **changed})}"


async def collected_by(collector: str, settings: Mapping[str, str], folder: Path) -> Json:
    """What the real agent collects. settings: of its collector. folder: for what it keeps."""
    options = [
        f"--{collector}-{name.replace('_', '-')}={value}" for name, value in settings.items()
    ]
    process = await asyncio.create_subprocess_exec(
        str(COLLECT), "--one-time", "--print", f"--cachedir={folder}", *options, collector,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    return json.loads(out)
