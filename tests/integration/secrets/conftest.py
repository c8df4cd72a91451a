"""One rich world in which everything that can echo a secret does: every adapter, people, checks, notifiers, plugins."""

import base64
import html
import io
import json
import logging
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, quote_plus

import duckdb
import pytest

from amends import Engine
from amends.core.errors import AmendsError
from amends.surfaces.cli import app
from amends.testing.conformance.project import write_project
from amends.testing.distributions import MadeDistributions
from amends.testing.loopback import LoopbackSystem
from amends.testing.loopback.git_http import GitHttp
from systems.matrices.git import over_http, start_of

# Every canary has the core in it, so that a part of one is found too.
CORE = "c4n4ry"
SECRETS = {
    "PARTNER": f'pa"rt/%41+{CORE}=Zq7Xw',
    "SLACK": f"sl4ck_{CORE}-Kd83hfQ'",
    "JIRA": f"jir4<{CORE}>&x~Kq82",
    "UNLEASH": f"*:*.unl34sh-{CORE}-77aa",
    "GIT": f"g1t+{CORE}/%2Fkd93==",
    "CARD": f"card {CORE}  4111 %20 x",
}


def forms(secret):
    """What a search looks for: the secret as it is and as systems encode it."""
    codes = [base64.b64encode(b"\0" * n + secret.encode()).decode() for n in range(3)]
    inner = [code.rstrip("=")[2 * (n > 0) + (n > 1) : -2] for n, code in enumerate(codes)]
    texts = [secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], html.escape(secret)]
    return {form.encode() for form in (*texts, repr(secret)[1:-1], secret.encode().hex(), *inner)}


def echo(secret):
    """What a careless system says."""
    joined = base64.b64encode(f"user:{secret}".encode()).decode()
    return (
        f"token {secret} ({quote(secret, safe='')}, {json.dumps(secret)}, {html.escape(secret)}, {joined}, "
        f"{secret.encode().hex()}) is wrong; {'.' * 400}{secret}"
    )


def searched(folder, secrets, more=()):
    """Where a canary, a form of one, or a part of one stands: in every byte of a folder, in every value of its DuckDB
    and Parquet files (which compress texts), and in `more` texts by name.
    """
    wanted = {CORE.encode()}.union(*(forms(secret) for secret in secrets))
    places = [(str(path.relative_to(folder)), path.read_bytes()) for path in folder.rglob("*") if path.is_file()]
    places += [(str(path.relative_to(folder)), path.name.encode()) for path in folder.rglob("*")]
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.suffix in {".duckdb", ".parquet"}:
            places.append((f"{path.relative_to(folder)} as values", values_of(path)))
    places += [(name, text.encode("utf-8", "surrogatepass")) for name, text in more]
    return sorted({f"{name}: {form.decode()}" for name, content in places for form in wanted if form in content})


def values_of(path):
    """Every value of a DuckDB or Parquet file, as text."""
    with duckdb.connect() as connection:
        if path.suffix == ".parquet":
            return repr(connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()).encode()
        connection.execute(f"ATTACH '{path}' AS kept (READ_ONLY)")
        connection.execute("USE kept")
        tables = connection.execute("SELECT schema, name FROM (SHOW ALL TABLES) WHERE database = 'kept'").fetchall()
        rows = [connection.execute(f'SELECT * FROM kept."{s}"."{t}"').fetchall() for s, t in tables]
        return repr(rows).encode()


class Hook:
    """A webhook that answers 500 and says what it was called with."""

    def __init__(self):
        self.asked = asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append((self.path, self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self.send_response(500, f"no {quote(self.path)}")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.secret = f"http://127.0.0.1:{self.server.server_port}/{CORE}/hook?token={CORE}-h00k"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


CARELESS = '''
"""A plugin that tells its secret in every way it can."""
from typing import ClassVar
from pydantic import BaseModel
from amends.spi import Capability, DoctorFinding, hookimpl
SPI = ">=1.0,<2"

@hookimpl
def amends_register_capabilities(context, registry):
    secret = context.secret("env:CARD")
    try:
        raise KeyError(secret)
    except KeyError as error:
        if context.name == "careless":
            raise RuntimeError(f"cannot log in with {secret!r} or {secret.encode().hex()}") from error

@hookimpl
def amends_register_doctor(context, registry):
    def examine():
        card = context.secret("env:CARD")
        yield DoctorFinding("problem", "login", f"{card} is refused", f"not {card!r}")
        raise RuntimeError(card)
    registry.doctor(examine)
'''


class Rich:
    """The world after its life: the project's folder, what was printed and logged, and the systems."""

    def __init__(self, folder, stack):
        self.folder = folder
        self.printed = []
        self.tried = {}
        self.errors = []
        self.logged = []
        self.systems = {
            name: stack.enter_context(LoopbackSystem.start(name, settings=settings))
            for name, settings in {
                "partner": {"tokens": {SECRETS["PARTNER"]: "acct_main"}},
                "slack": {"tokens": {SECRETS["SLACK"]: "U0AGENT", "human": "U0HUMAN"}},
                "jira": {"credentials": {f"agent@example.test:{SECRETS['JIRA']}": "acc-agent"}},
                "unleash": {"tokens": {SECRETS["UNLEASH"]: "amends-agent"}},
            }.items()
        }
        self.hook = Hook()
        stack.callback(self.hook.close)
        outside = folder.parent / "outside"
        outside.mkdir()
        self.git = stack.enter_context(
            GitHttp(outside, wanted="Basic " + base64.b64encode(f"x-access-token:{SECRETS['GIT']}".encode()).decode())
        )
        self.forge = start_of(outside, self.git.url)
        self.database = outside / "staging.db"
        sqlite3.connect(self.database).close()
        self._seed()
        self._write()

    @property
    def environment(self):
        """What the secret references stand for."""
        return {**SECRETS, "HOOK": self.hook.secret, "STAGING": f"sqlite:///{self.database}"}

    def _seed(self):
        self.systems["slack"].control("seed_channel", id="C0BILLING", name="billing", members=["U0AGENT"])
        self.systems["slack"].control("seed_user", id="U0MAYA", name="maya")
        self.systems["jira"].control("seed_issue", key="BILL-1", summary="x", status="In Progress")
        self.systems["unleash"].control(
            "seed_flag", name="panel", description="d", environments={"staging": {"enabled": False, "strategies": []}}
        )
        versions = self.folder / "migrations" / "versions"
        versions.mkdir(parents=True)
        (versions / "r1.py").write_text(
            "from alembic import op\nrevision = 'r1'\ndown_revision = None\n\n\n"
            "def upgrade():\n    op.execute('CREATE TABLE billing (id INTEGER)')\n\n\n"
            "def downgrade():\n    op.execute('DROP TABLE billing')\n"
        )

    def _write(self):
        code = "import os, sys; print(os.environ['CARD']); print({}, os.environ['CARD'], file=sys.stderr); sys.exit(3)"
        write_project(
            self.folder,
            {
                "partner": {
                    "plugin": "http", "base_url": self.systems["partner"].url, "contracts": "package:partner",
                    "token": "env:PARTNER", "account": "acct_main",
                },
                "slack": {
                    "base_url": f"{self.systems['slack'].url}/api", "token": "env:SLACK",
                    "people": {"maya": "U0MAYA"},
                },
                "jira": {
                    "base_url": self.systems["jira"].url, "token": "env:JIRA", "email": "agent@example.test",
                    "customer_facing": False,
                },
                "flags": {
                    "base_url": self.systems["unleash"].url, "token": "env:UNLEASH", "tell": "person:maya",
                    "flag_environment": "staging",
                },
                "git": {
                    "repositories": {
                        "billing": {
                            **over_http(self.git.url), "token": "env:GIT", "checkout": str(self.forge.clone),
                        }
                    }
                },
                "migrations": {"databases": {"billing": {"url_secret": "env:STAGING", "scripts": "migrations"}}},
                "careless": {"card": "env:CARD"},
                "blabbing": {"plugin": "careless", "card": "env:CARD"},
            },
        )  # fmt: skip
        with (self.folder / "amends.toml").open("a") as file:
            file.write(
                f'\n[checks.ci]\ncommand = [{sys.executable!r}, "-c", {json.dumps(code)}]\n'
                f'\n[notifiers.hook]\nkind = "webhook"\nurl = "env:HOOK"\n'
                f'\n[notifiers.pipe]\nkind = "command"\ncommand = [{sys.executable!r}, "-c", {json.dumps(code)}]\n'
            )

    # --- its life ---------------------------------------------------------------------------------------------

    def live(self):
        """Everything an agent, its systems and its people do, and everything Amends is asked about it."""
        with Engine.open(self.folder, mirror=True) as engine:
            self._well(engine)
            self._refused(engine)
            self._told(engine)
            self._lost(engine)
            engine.ledger.refresh()
            engine.seal(keep_days=0)

    def _try(self, run, name, args, **named):
        try:
            result = run.call(name, args, **named)
        except AmendsError as error:
            self.errors.append(str(error.as_dict()))
            return None
        self.tried[f"{name}:{result.status.value}"] = result
        self.printed.append((f"result of {name}", repr(result)))
        return result

    def _well(self, engine):
        run = engine.run(workflow="well", run_key="1", agent="agent")
        for name, args in CALLS.items():
            self._try(run, name, args)
        outcome = run.fail(f"the login {SECRETS['JIRA']} failed: {echo(SECRETS['GIT'])}", wait_seconds=8)
        self.printed.append(("outcome", repr(outcome)))

    def _refused(self, engine):
        """Every system refuses or breaks, and says with what it was asked."""
        for name, secret in {"partner": "PARTNER", "slack": "SLACK", "jira": "JIRA", "unleash": "UNLEASH"}.items():
            said = {"message": echo(SECRETS[secret]), "errorMessages": [echo(SECRETS[secret])], "error": "invalid_auth"}
            self.systems[name].arm("refuse", status=403, body=said)
        run = engine.run(workflow="refused", run_key="1", agent="agent")
        for name, args in OTHERS.items():
            self._try(run, name, args)
        for name, secret in {"partner": "PARTNER", "jira": "JIRA", "unleash": "UNLEASH"}.items():
            self.systems[name].arm(
                "error_after_commit", status=502, body=f"<html><pre>{echo(SECRETS[secret])}</pre></html>"
            )
        run.fail("stop", wait_seconds=4)
        run = engine.run(workflow="broken", run_key="1", agent="agent")
        for name, args in OTHERS.items():
            self._try(run, name, args)
        run.fail("stop", wait_seconds=4)

    def _told(self, engine):
        """An agent that knows the secrets puts them wherever it can."""
        for field in ("workflow", "run_key", "intent_ref"):
            with suppress(AmendsError):
                engine.run(**{"workflow": "told", "run_key": field, "agent": "agent", field: SECRETS["SLACK"]})
                self.errors.append(f"a run was opened whose {field} is a secret")
        run = engine.run(workflow="told", run_key="1", agent="agent")
        for secret in self.environment.values():
            for text in (secret, f"see {secret}", quote(secret, safe=""), secret.encode().hex()):
                assert self._try(run, "slack.post", {"channel": "C0BILLING", "text": text}) is None
            assert self._try(run, "slack.post", {"channel": "C0BILLING", "text": "x"}, label=secret) is None
        run.fail(f"because of {SECRETS['CARD']}", wait_seconds=2)

    def _lost(self, engine):
        """People are asked, checks asked, notifiers tried."""
        run = engine.run(workflow="checked", run_key="1", agent="agent", check="ci")
        self._try(run, "partner.reserve_inventory", {"order": "o-9", "sku": "S", "quantity": 1})
        run.finish(wait_seconds=1)
        self.systems["partner"].arm("drop_after_commit", method="POST")
        self.systems["partner"].arm(
            "refuse", method="reads", status=403, times=None, body={"m": echo(SECRETS["PARTNER"])}
        )
        lost = engine.run(workflow="lost", run_key="1", agent="agent")
        self._try(lost, "partner.reserve_inventory", {"order": "o-10", "sku": "S", "quantity": 1})
        lost.fail("stop", wait_seconds=3)
        engine.recover(wait_seconds=2)
        asking = engine.run(workflow="asking", run_key="1", agent="agent")
        self._try(asking, "git.create_branch", {"repo": "billing", "branch": "feature/y"})
        self._try(asking, "git.delete_branch", {"repo": "billing", "branch": "feature/y"})  # waits for an approval

    def ask(self, *arguments):
        """Run a command in this process; what it printed."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = app.run(["-c", str(self.folder / "amends.toml"), *arguments])
        self.printed.append((" ".join(map(str, arguments)), out.getvalue() + err.getvalue()))
        return code, out.getvalue()

    def crash(self, code):
        """A process of an agent that dies of an exception, with everything it says."""
        script = (
            "import os, sys\nfrom amends import Engine\nengine = Engine.open(sys.argv[1], mirror=False)\n"
            "run = engine.run(workflow='crash', run_key=str(os.getpid()), agent='agent')\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script + code, str(self.folder)], capture_output=True, text=True, check=False
        )
        assert ended.returncode != 0
        self.printed.append(("crash", ended.stdout + ended.stderr))
        return ended.stderr


CALLS = {
    "partner.reserve_inventory": {"order": "o-1", "sku": "S", "quantity": 1},
    "slack.post": {"channel": "C0BILLING", "text": "hello"},
    "jira.comment": {"key": "BILL-1", "text": "hello"},
    "flags.set": {"feature": "panel", "enabled": True},
    "git.create_branch": {"repo": "billing", "branch": "feature/x"},
    "migrations.upgrade": {"database": "billing", "to": "r1"},
}
OTHERS = {
    "partner.reserve_inventory": {"order": "o-2", "sku": "S", "quantity": 1},
    "slack.post": {"channel": "C0BILLING", "text": "again"},
    "jira.comment": {"key": "BILL-1", "text": "again"},
    "flags.create": {"feature": "other"},
    "git.create_branch": {"repo": "billing", "branch": "bad..name"},
}


@pytest.fixture(scope="package")
def rich(tmp_path_factory):
    """The world, after its life and after every question about it."""
    folder = tmp_path_factory.mktemp("rich")
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    keep = Keep(logging.DEBUG)
    root = logging.getLogger()
    level = root.level
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        made = MadeDistributions(folder / "site")
        made.add("amends-careless", CARELESS, entry_point="careless")
        stack.callback(made.forget)
        patch.syspath_prepend(str(made.folder))
        temporary = folder / "temporary"
        temporary.mkdir()
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", str(temporary))
        patch.setenv("PYTHONPATH", str(made.folder))
        world = Rich(folder / "project", stack)
        world.logged = records
        for name, value in world.environment.items():
            patch.setenv(name, value)
        root.addHandler(keep)
        root.setLevel(logging.DEBUG)
        try:
            world.live()
            yield world
        finally:
            root.removeHandler(keep)
            root.setLevel(level)


@pytest.fixture(scope="package")
def secrets(rich):
    """Every secret of the world, by the name of its reference."""
    return rich.environment


@pytest.fixture(scope="package")
def search(secrets):
    """Where something of any secret stands, as `searched` says."""
    return lambda folder, more=(): searched(folder, secrets.values(), more)
