"""A drawer: effects are files in a folder. What is sent is written to its log, as a system of its own would."""

import hashlib
import json
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from amends.core.contract import Alternative, Contract, Effect, Identity, Keying, Limits, ProbeRule, Readers, Reference
from amends.core.evidence import Observation
from amends.spi import Capability, Done, PolicyContribution, Refused, hookimpl

POLICIES = """
@id("{name}:put") @reason("agents may put")
permit (principal is Amends::Agent, action == {space}::Action::"{name}.put", resource);
@id("{name}:undo") @reason("recovery may take it out again")
permit (principal is Amends::Service, action == {space}::Action::"{name}.put.undo", resource);
"""


class Put(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    key: str = "env:DRAWER_KEY"
    beside: str = ""


class Drawer(Capability):
    arguments = Put

    def __init__(self, name, folder, lies, rungs):
        self.folder, self.lies = folder, lies
        self.contract = Contract(
            capability=f"{name}.put",
            summary="puts one thing into the drawer",
            effect=Effect(kind="thing", system="drawer", resource="thing:{name}"),
            readers=Readers(audience="machine", where="the drawer"),
            undo_cost="none",
            reversibility="reversible",
            identity=Identity(fields=("name",)),
            keying=Keying(kind="probeable"),
            probe=ProbeRule(
                strength="id", schedule_seconds=(0.0, 0.1, 0.2), deadline_seconds=5.0, absent_final_after_seconds=0.3
            ),
            reference=Reference(field="id", pattern="thing-[0-9a-f]{12}"),
            compensation=tuple(Alternative(name=rung) for rung in rungs),
            secret_arguments=("key",),
            limits=Limits(timeout_seconds=1.0),
        )

    def do(self, call):
        if self._path(call).exists():
            raise Refused(f"there is a {call.args['name']} already", code="exists")
        self._log("put", call, key=call.secret(str(call.args["key"])))
        self._path(call).write_text(call.marker)
        if "pytest" not in sys.modules:
            print("put", call.args["name"])  # in a process of its own an adapter may talk
        return Done(effect={"id": self._id(call)}, reference=self._id(call))

    def probe(self, question):
        return Observation(seen="applied" if self._path(question).exists() else "absent", reference=self._id(question))

    def undo(self, call):
        self._log(call.rung, call)
        if not self.lies:
            self._path(call).unlink(missing_ok=True)
        return Done()

    def verify_undone(self, question):
        return Observation(seen="absent") if self.lies else self.probe(question)

    def _log(self, what, call, **more):
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("a") as log:
            log.write(json.dumps({"what": what, "args": dict(call.args), **more}) + "\n")

    def _id(self, question):
        return "thing-" + hashlib.sha256(f"{self.folder}{question.args['name']}".encode()).hexdigest()[:12]

    def _path(self, question):
        return self.folder / self._id(question)


@hookimpl
def amends_register_capabilities(context, registry):
    folder = Path(context.base_path) / str(context.options["folder"])
    rungs = context.options.get("rungs", ["take_out"])
    registry.capability(Drawer(context.name, folder, bool(context.options.get("lies")), tuple(rungs)))


@hookimpl
def amends_register_policies(context, registry):
    space = context.name.capitalize()
    registry.policies(PolicyContribution({"drawer.cedar": POLICIES.format(name=context.name, space=space)}))
