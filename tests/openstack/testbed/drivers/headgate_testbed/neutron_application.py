"""Neutron's application, with all database relations configured before the first request.

Relations that service plug-ins add to ports are otherwise missing until a query runs, and a first
request that uses one fails.
"""

import sqlalchemy.orm
from neutron.wsgi.api import application

__all__ = ["application"]
sqlalchemy.orm.configure_mappers()
