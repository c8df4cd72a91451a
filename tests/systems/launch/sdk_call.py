"""Make one call with a vendor's own SDK and print as JSON what its caller is told. Usage: JSON

Its pauses between two sends are left out: how often it sends is the question, not how long it takes.
"""

import json
import sys
import time
from typing import Any

from jira import JIRA
from slack_sdk import WebClient
from stripe import StripeClient

time.sleep = lambda _seconds: None


def slack(url: str, token: str, *, retries: bool, **said: Any) -> Any:
    """Post a message; its `ts`."""
    client = WebClient(token, url) if retries else WebClient(token, url, retry_handlers=[])
    return client.chat_postMessage(**said)["ts"]


def jira(url: str, token: str, *, retries: bool, **fields: Any) -> Any:
    """Create an issue; its key."""
    client = JIRA(url, token_auth=token) if retries else JIRA(url, token_auth=token, max_retries=0)
    return client.create_issue(fields=fields).key


def stripe(url: str, token: str, *, retries: bool, **form: Any) -> Any:
    """Charge a card; the charge's id."""
    retry: dict[str, Any] = {} if retries else {"max_network_retries": 0}
    client = StripeClient(token, base_addresses={"api": url}, **retry)
    return client.v1.charges.create(form).id


asked = json.loads(sys.argv[1])
sdk = {"slack": slack, "jira": jira, "stripe": stripe}[asked["sdk"]]
try:
    told = {"reference": sdk(asked["url"], asked["token"], retries=asked["retries"], **asked["args"]), "error": ""}
except Exception as error:  # noqa: BLE001 - whatever a vendor's SDK raises is what its caller is told
    told = {"reference": "", "error": type(error).__name__}
print(json.dumps(told))
