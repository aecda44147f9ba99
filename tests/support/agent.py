"""The agent of a server, as it asks what is deployed to it."""

from urllib.parse import urlencode, urlsplit

from hub.auth.signature import signed
from tests.support.program import Json

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
