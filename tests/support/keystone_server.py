"""Serves Keystone on loopback, run by Keystone's own Python. Arguments: the folder and the port."""

import os
import sys


def main() -> None:
    folder, port = sys.argv[1:]
    del sys.argv[1:]  # otherwise Keystone parses these arguments
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = os.path.join(folder, "keystone.conf")
    from keystone.server.wsgi import initialize_public_application  # type: ignore[import-not-found]
    from werkzeug.serving import make_server

    application = initialize_public_application()
    make_server("127.0.0.1", int(port), application, threaded=True).serve_forever()


if __name__ == "__main__":
    main()
