"""Policy through Cedar: the authorizer, `check` and `test`. The only owner of cedarpy."""

from amends.backends.cedar.authorizer import CedarAuthorizer, rederive

__all__ = ["CedarAuthorizer", "rederive"]
