"""Evaluate one flag of a flagd file with OpenFeature's flagd provider and print the outcome as JSON."""

import json
import sys

from openfeature import api
from openfeature.contrib.provider.flagd import FlagdProvider
from openfeature.contrib.provider.flagd.config import ResolverType
from openfeature.evaluation_context import EvaluationContext

asked = json.loads(sys.argv[1])
api.set_provider_and_wait(FlagdProvider(resolver_type=ResolverType.FILE, offline_flag_source_path=asked["path"]))
client = api.get_client()
default = asked["default"]
read = {
    bool: client.get_boolean_details,
    int: client.get_integer_details,
    float: client.get_float_details,
    str: client.get_string_details,
    dict: client.get_object_details,
}[type(default)]
context = EvaluationContext(asked["context"].pop("targeting_key", None), asked["context"])
seen = read(asked["flag"], default, context)
outcome = {
    "value": seen.value,
    "variant": seen.variant or "",
    "reason": str(getattr(seen.reason, "value", seen.reason) or ""),
    "error": str(getattr(seen.error_code, "value", seen.error_code) or ""),
}
print(json.dumps(outcome))
api.shutdown()
