"""os-collect-config, the agent of OpenStack servers, and the URL from which it fetches metadata."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from hub.api.headgate.server_metadata import sign
from tests.support.program import Json

OS_COLLECT_CONFIG = Path(sys.executable).with_name("os-collect-config")
SERVER: Json = {"type": "OS::Heat::DeployedServer", "metadata": {"role": "web"}}
#: An output with the settings of the server's agent.
OUTPUTS: Json = {"agent": {"value": {"get_attr": ["server", "os_collect_config"]}}}


def signed_metadata_url(settings: Json, **changed: str) -> str:
    """The metadata URL. settings: the agent's settings. changed: query parameters to change after
    signing.
    """
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
    signature = sign(cfn["secret_access_key"], "GET", url.netloc, url.path, query)
    return f"{cfn['metadata_url']}?{urlencode({**query, 'Signature': signature, **changed})}"


async def collect_metadata(collector: str, settings: Mapping[str, str], folder: Path) -> Json:
    """The metadata that os-collect-config fetches. settings: options of the collector. folder: its
    cache.
    """
    options = [
        f"--{collector}-{name.replace('_', '-')}={value}" for name, value in settings.items()
    ]
    process = await asyncio.create_subprocess_exec(
        str(OS_COLLECT_CONFIG), "--one-time", "--print", f"--cachedir={folder}", *options,
        collector,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    return json.loads(out)
