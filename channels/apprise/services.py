"""The services that the operator has named, as Apprise sends to them.

Apprise is an extra, and is imported only if [channels.apprise] services_file is set.
"""

import re
from collections.abc import Callable, Mapping

from engine.errors import Findings

#: Sends a title and a text; returns whether the service accepted them. It blocks.
Service = Callable[[str, str], bool]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def read_services(text: str, findings: Findings) -> Mapping[str, Service]:
    """Lines such as ``ops = matrixs://...``. An error does not contain a URL, which is secret.

    Raises ImportError if Apprise is not installed.
    """
    from apprise import Apprise, AppriseAsset, NotifyFormat

    def service_of(sender: Apprise) -> Service:
        def send(title: str, body: str) -> bool:
            return bool(sender.notify(title=title, body=body, body_format=NotifyFormat.TEXT))

        return send

    services: dict[str, Service] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, url = (part.strip() for part in line.partition("="))
        place = f"line {number}"
        if not separator or not NAME.fullmatch(name):
            findings.add(place, "does not have the form NAME = URL", "Write ops = matrixs://...")
        elif name in services:
            findings.add(place, f'has the name "{name}" again', "Give each service its own name.")
        else:
            sender = Apprise(asset=AppriseAsset(async_mode=False, secure_logging=True))
            if not sender.add(url):
                remedy = "The documentation of Apprise has the URL of each service."
                findings.add(place, "has a URL that Apprise does not accept", remedy)
            services[name] = service_of(sender)
    return services
