"""The authorizer of an engine that sends nothing: it loads no policy and allows nothing."""

from __future__ import annotations

from amends.core.evidence import Decision
from amends.ports.authorizer import AuthorizationRequest, PolicyBundle


class NoPolicies:
    """Implements `amends.ports.authorizer.Authorizer`: every request is denied."""

    def decide(self, request: AuthorizationRequest) -> Decision:
        return Decision(
            decision_id=request.decision_id,
            verdict="deny",
            action=request.action,
            policy_version="none",
            effective_digest="none",
            code="no_policies",
            reasons=("this engine was opened for people's decisions and loads no policies",),
        )

    def bundle(self) -> PolicyBundle:
        return PolicyBundle("none", "none", {})

    def permits(self, namespace: str, action: str) -> tuple[str, ...]:
        """None: nobody is ever allowed anything."""
        del namespace, action
        return ()
