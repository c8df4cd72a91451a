"""Ask Unleash's own client whether a flag is on and print it as JSON. Usage: URL TOKEN FLAG USER CACHE"""

import json
import sys

from UnleashClient import UnleashClient

url, token, flag, user, cache = sys.argv[1:]
client = UnleashClient(
    url=url,
    app_name="amends-tests",
    custom_headers={"Authorization": token},
    cache_directory=cache,
    disable_metrics=True,
    disable_registration=True,
)
client.initialize_client()
print(json.dumps({"enabled": client.is_enabled(flag, {"userId": user} if user else {})}))
client.destroy()
