"""localstripe on the loopback interface, with its state in memory: its own command listens on every interface and
keeps all its instances in one file. Usage: PORT
"""

import sys

from aiohttp import web
from localstripe.resources import Store
from localstripe.server import app

Store.dump_to_disk = lambda _store: None
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]))
