"""The environment is made, renewed, checked, and never left half-made."""

import ast
import contextlib
import fcntl
import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import environment
import packaging
import pip
import pytest

SCRIPT = Path(environment.__file__)

# Loads the script, changes it as the first argument says, and runs it.
DRIVER = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import environment
environment.NEEDED_GB = 0
exec(sys.argv[1])
sys.exit(environment.main(sys.argv[2:]))
"""

# Borrows pip from another folder, since installing it takes seconds.
BORROW_PIP = """
import pathlib, sysconfig
pathlib.Path(sysconfig.get_path("purelib"), "pip.pth").write_text({!r})
"""

# A build that tells its own process and pip's, then holds a lock until it dies.
SLOW_BUILD = """
import fcntl, os, time
held = open(os.environ["HELD"], "w")
fcntl.flock(held, fcntl.LOCK_EX)
held.write(f"{os.getpid()} {os.getppid()} end")
held.flush()
time.sleep(60)
"""

# The clock jumps an hour once the slow build runs, however long that takes to start.
CLOCK_JUMPS_DURING_BUILD = """
import os, time
held, now = os.environ["HELD"], time.monotonic
def jumping():
    running = os.path.exists(held) and open(held).read().endswith("end")
    return now() + 3600 * running
time.monotonic = jumping
"""

FULL_DISK_BUILD = """
with open("/dev/full", "w") as full:
    full.write("x")
"""


def until(condition, what):
    """Wait until ``condition()`` is true; fail after 20 seconds, naming ``what``."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)


def snapshot(folder):
    """Return the path, type, size and time of all that ``folder`` holds."""
    return {
        path: (path.is_symlink(), path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in [folder, *folder.rglob("*")]
    }


class Site:
    """A small repository with a folder of packages, all inside ``tmp_path``."""

    def __init__(self, tmp_path, pip_home):
        self.root = tmp_path / "my site"  # with a space, as on many a desktop
        self.venv = self.root / ".venv"
        self.packages = tmp_path / "packages"
        self.held = tmp_path / "held"
        self.temporary = tmp_path / "tmp"
        for folder in (self.root, self.packages, self.temporary):
            folder.mkdir()
        self.quick = f"environment.ENSURE_PIP = ['-c', {BORROW_PIP.format(pip_home)!r}]"
        ours = ("PIP_", "PYTHON")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        self.env.update(
            HOME=str(tmp_path),
            TMPDIR=str(self.temporary),
            HELD=str(self.held),
            PIP_CONFIG_FILE=os.devnull,
            PIP_NO_INDEX="1",
            PIP_FIND_LINKS=str(self.packages),
        )
        self.add_wheel("1.0")
        self.add_wheel("2.0")
        self.pin("tiny==1.0\n")

    def pin(self, text):
        """Make ``text`` the requirements."""
        (self.root / "requirements.txt").write_text(text)
        (self.root / "constraints.txt").write_text("")

    def add_wheel(self, version, name="tiny", requires=""):
        """Add a package that can be installed."""
        info = f"{name}-{version}.dist-info"
        meta = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"
        wheel = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        file = self.packages / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(f"{name}.py", f"version = {version!r}\n")
            archive.writestr(f"{info}/METADATA", meta)
            archive.writestr(f"{info}/WHEEL", wheel)
            archive.writestr(f"{info}/RECORD", "")

    def add_source(self, backend):
        """Add and pin a package that runs the code ``backend`` when it is built."""
        project = (
            "[build-system]\nrequires = []\n"
            'build-backend = "backend"\nbackend-path = ["."]\n'
        )
        with tarfile.open(self.packages / "source-1.0.tar.gz", "w:gz") as archive:
            for name, text in (("pyproject.toml", project), ("backend.py", backend)):
                member = tarfile.TarInfo(f"source-1.0/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        self.pin("source==1.0\n")

    def start(self, patch="", python=sys.executable, venv=".venv"):
        """Start the script, changed by the code ``patch``, to make ``venv``."""
        return subprocess.Popen(
            [python, "-B", "-c", DRIVER, f"{self.quick}\n{patch}", "--root", ".", venv],
            cwd=self.root,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process):
        """Return ``process`` as completed, with its output."""
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def make(self, *args, **kwargs):
        """Run the script to its end; the arguments are those of ``start``."""
        return self.finish(self.start(*args, **kwargs))

    def run_plain(self, *arguments):
        """Run the script as it is, the way the Makefile does."""
        return subprocess.run(
            [sys.executable, SCRIPT, "--root", ".", *arguments],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def version(self):
        """Return the version of ``tiny`` that the made environment imports."""
        command = [
            self.venv / "bin" / "python",
            "-c",
            "import tiny; print(tiny.version)",
        ]
        return subprocess.check_output(command, text=True).strip()

    def wait_for_build(self):
        """Return the process ids of the slow build and of pip, once it runs."""
        until(
            lambda: self.held.exists() and self.held.read_text().endswith("end"),
            "the build of the slow package to start",
        )
        return [int(number) for number in self.held.read_text().split()[:2]]

    def build_has_ended(self):
        """Return whether the process of the slow build is gone."""
        with self.held.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def assert_nothing_left(self):
        """Assert that no folder, lock or temporary file remains beside the pins."""
        left = sorted(path.name for path in self.root.iterdir())
        assert left == ["constraints.txt", "requirements.txt"]
        assert list(self.temporary.iterdir()) == []


@pytest.fixture(scope="module")
def pip_home(tmp_path_factory):
    """Return a folder from which pip, and nothing else, can be imported."""
    home = tmp_path_factory.mktemp("pip")
    shutil.copytree(Path(pip.__file__).parent, home / "pip")
    return str(home)


@pytest.fixture
def site(tmp_path, pip_home):
    """Return a small repository that pins ``tiny==1.0``."""
    return Site(tmp_path, pip_home)


def assert_made(done):
    """Assert that ``done`` made the environment and said so in two lines."""
    assert (done.returncode, done.stderr) == (0, "")
    making, made = done.stdout.splitlines()
    assert making.startswith("making .venv with the pinned packages")
    assert made.startswith("made .venv in ")
    assert made.endswith(" s")


def assert_one_line(done, code, *words):
    """Assert that ``done`` ended with ``code`` and one line that holds ``words``."""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("environment: ")
    for word in words:
        assert word in lines[0]
    assert done.returncode == code


# Making and renewing


def test_first_make_then_nothing_to_do(site):
    site.quick = ""  # with the real ensurepip, once
    assert_made(site.make())
    assert site.version() == "1.0"
    assert len((site.venv / "pins.key").read_text()) == 64
    assert not (site.venv / "pins.making").exists()
    assert not (site.root / ".venv.lock").exists()
    assert list(site.temporary.iterdir()) == []

    before = snapshot(site.venv)
    again = site.run_plain(".venv")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert snapshot(site.venv) == before


def test_changed_pin_renews(site):
    assert_made(site.make())
    (site.venv / "marker").touch()
    site.pin("tiny==2.0\n")
    # As when the reader has activated the very environment that is replaced.
    assert_made(site.make(python=site.venv / "bin" / "python"))
    assert site.version() == "2.0"
    assert not (site.venv / "marker").exists()


def test_key_depends_on_all_that_decides(site, monkeypatch):
    keys = [environment.current_key(site.root)]
    assert environment.current_key(site.root) == keys[0]
    (site.root / "constraints.txt").write_text("tiny<3\n")
    keys.append(environment.current_key(site.root))
    site.pin("tiny==2.0\n")
    keys.append(environment.current_key(site.root))
    monkeypatch.setattr(sys, "platform", "other")
    keys.append(environment.current_key(site.root))
    monkeypatch.setattr(sys, "version_info", (3, 99, 1))
    keys.append(environment.current_key(site.root))
    assert len(set(keys)) == 5


def break_python(venv):
    """Make the Python of ``venv`` one that is there and does not run."""
    python = venv / "bin" / "python"
    python.unlink()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)


def test_half_made_is_made_again(site):
    # Without a key, as after an installation that was killed.
    command = [sys.executable, "-m", "venv", "--without-pip", site.venv]
    subprocess.run(command, check=True, timeout=60)
    (site.venv / "marker").touch()
    assert_made(site.make())
    assert site.version() == "1.0"
    assert not (site.venv / "marker").exists()

    # With a key but no Python, as after an upgrade of the system's.
    key = (site.venv / "pins.key").read_text()
    assert environment.is_current(site.venv, key)
    break_python(site.venv)
    assert not environment.is_current(site.venv, key)
    (site.venv / "bin" / "python").unlink()
    (site.venv / "bin" / "python").symlink_to("no-such-python")
    (site.venv / "marker").touch()
    assert_made(site.make())
    assert site.version() == "1.0"
    assert not (site.venv / "marker").exists()


def test_symbolic_link_is_followed(site):
    elsewhere = site.root.parent / "elsewhere"
    elsewhere.mkdir()
    site.venv.symlink_to(elsewhere)
    assert_made(site.make())
    assert site.venv.is_symlink()
    assert (elsewhere / "pins.key").exists()


def test_two_runs_at_once_make_it_once(site):
    pair = [site.start(), site.start()]
    done = [site.finish(process) for process in pair]
    assert [(x.returncode, x.stderr) for x in done] == [(0, ""), (0, "")]
    assert "".join(x.stdout for x in done).count("making .venv") == 1
    assert site.version() == "1.0"
    assert not (site.root / ".venv.lock").exists()


# Failures: one line, and nothing left


def test_package_that_does_not_exist(site):
    site.pin("tiny==3.0\n")
    assert_one_line(site.make(), 1, "no package found for tiny==3.0", "correct the pin")
    site.assert_nothing_left()


def test_pins_that_conflict(site):
    site.add_wheel("1.0", name="user", requires="Requires-Dist: tiny==1.0\n")
    site.pin("user==1.0\ntiny==2.0\n")
    assert_one_line(site.make(), 1, ".venv is not ready: Cannot install", "tiny==2.0")
    site.assert_nothing_left()


def test_no_network(site):
    del site.env["PIP_NO_INDEX"]
    site.env["PIP_INDEX_URL"] = "http://127.0.0.1:9/"
    site.pin("other==1.0\n")
    assert_one_line(site.make(), 1, "no network", ".venv", "check the connection")
    site.assert_nothing_left()


def test_no_space_before(site):
    full = "import shutil, types; environment.NEEDED_GB = 10\n"
    full += "shutil.disk_usage = lambda path: types.SimpleNamespace(free=2.5e9)"
    done = site.make(full)
    assert_one_line(done, 1, "no space: .venv needs 10 GB", "2.5 GB", "free some")
    site.assert_nothing_left()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device is Linux's")
def test_no_space_during(site):
    site.add_source(FULL_DISK_BUILD)
    assert_one_line(site.make(), 1, "no space left", "making .venv", "run make again")
    site.assert_nothing_left()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_leaves_nothing(site, number):
    site.add_source(SLOW_BUILD)
    # A shell that runs the tests in the background may have it ignored.
    notice = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    process = site.start(notice)
    try:
        _, pip = site.wait_for_build()
        assert site.venv.is_dir()
        assert not site.build_has_ended()
    finally:
        process.send_signal(number)
    assert_one_line(site.finish(process), 130, "interrupted", ".venv", "run make again")
    site.assert_nothing_left()
    until(site.build_has_ended, "the build to end")
    with pytest.raises(ProcessLookupError):
        os.kill(pip, 0)


def test_too_slow(site):
    site.add_source(SLOW_BUILD)
    done = site.make(CLOCK_JUMPS_DURING_BUILD)
    site.wait_for_build()
    assert_one_line(
        done, 1, ".venv was not complete after 20 minutes", "check network and disk"
    )
    site.assert_nothing_left()
    until(site.build_has_ended, "the build to end")


def test_killed_outright(site):
    """What is still running keeps the lock; then the half-made folder is replaced."""
    site.add_source(SLOW_BUILD)
    process = site.start()
    build, pip = site.wait_for_build()
    try:
        process.kill()
        assert site.finish(process).returncode == -signal.SIGKILL
        before = snapshot(site.venv)
        done = site.make("environment.LOCK_SECONDS = 0.3")
        assert_one_line(done, 1, "another run still makes .venv", "end that one")
        assert snapshot(site.venv) == before
    finally:
        for number in (pip, build):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
    (site.venv / "pyvenv.cfg").unlink()  # as if killed still earlier
    site.pin("tiny==1.0\n")
    assert_made(site.make())
    assert site.version() == "1.0"
    assert not (site.root / ".venv.lock").exists()


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt"])
def test_missing_file_of_pins(site, name):
    (site.root / name).unlink()
    assert_one_line(site.run_plain(".venv"), 1, f"{name} is missing", "git checkout")
    assert not site.venv.exists()


def test_missing_parent(site):
    done = site.run_plain("no/such/.venv")
    assert_one_line(done, 1, "the folder to hold no/such/.venv is missing")
    site.assert_nothing_left()


def test_old_python(site):
    done = site.make("sys.version_info = (3, 9, 2, 'final', 0)")
    assert_one_line(done, 1, "Python 3.11 or newer is needed", "is 3.9.2", "PYTHON=")
    site.assert_nothing_left()


def test_old_python_can_parse_the_script():
    with pytest.raises(SyntaxError):
        ast.parse("(a := 1)", feature_version=(3, 6))
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_python_without_venv(site, module):
    without = "import importlib.util as u; find = u.find_spec\n"
    without += f"u.find_spec = lambda name: name != {module!r} and find(name)"
    assert_one_line(site.make(without), 1, "lacks venv or ensurepip", "python3-venv")
    site.assert_nothing_left()


def test_what_is_not_an_environment_is_not_touched(site):
    folder = site.root / "notes"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    (site.root / "file").write_text("text")
    (site.root.parent / "pyvenv.cfg").touch()  # the repository lies in an environment
    before = snapshot(site.root)
    for name in ("notes", "file", "..", "."):
        done = site.make(venv=name)
        assert_one_line(done, 1, f"{name} exists and is not an environment", "move it")
        after = snapshot(site.root)
        # A lock file comes and goes: it changes the time of the folder alone.
        assert {**after, site.root: None} == {**before, site.root: None}


# What pip prints, and what the reader gets

REFUSED = (
    "after connection broken by 'NewConnectionError('<pip.Connection at 0x7f>: Failed "
    "to establish a new connection: [Errno 111] Connection refused')': /simple/a/"
)
NONE = "ERROR: No matching distribution found for a==1"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (f"WARNING: Retrying (Retry(total=0)) {REFUSED}\n{NONE}", "no network: "),
        (f"WARNING: Retrying (Retry(total=1)) {REFUSED}\n{NONE}", "no package found "),
        ("ERROR: x: Temporary failure in name resolution", "no network: "),
        ("ERROR: x\nReadTimeoutError: Read timed out.", "no network: "),
        ("ERROR: [Errno 28] Kein Speicherplatz: '/a/b'", "no space left on the disk "),
        ("OSError: [Errno 122] Disk quota exceeded", "no space left on the disk "),
        ("ERROR: first\nERROR: second\nhint", ".venv is not ready: second; "),
        ("a traceback\nKeyError: 'x'", ".venv is not ready: KeyError: 'x'; "),
        (
            "ERROR: [Errno 13] Permission denied: '/home/me/site/.venv/bin'",
            ".venv is not ready: [Errno 13] Permission denied: 'bin'; ",
        ),
    ],
)
def test_explain(output, line):
    told = environment.explain(output, ".venv")
    assert told.startswith(line)
    assert "\n" not in told


# An environment that the reader brings


@pytest.fixture
def given(site):
    """Return the folder of an environment, and a function that adds a package."""
    folder = site.root / "given"
    command = [sys.executable, "-m", "venv", "--without-pip", folder]
    subprocess.run(command, check=True, timeout=60)
    packages = next(folder.glob("lib/*/site-packages"))

    def add(name, version):
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text)

    add("tiny_pkg", "1.0")
    add("torch", "2.14.1+cpu")
    shutil.copytree(
        Path(packaging.__file__).parent,
        packages / "packaging",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return folder, add


GOOD_PINS = """\
# The pins
-c constraints.txt
Tiny.Pkg[extra, more] == 1.0.0  # normalised
torch==2.14.1 \\
    --hash=sha256:00
loose>=3
wild==1.*
never==9.0 ; python_version < "3"
"""


def test_given_good(site, given):
    folder, _ = given
    site.pin(GOOD_PINS)
    before = snapshot(folder)
    for path in ("given", str(folder)):
        done = site.run_plain("--given", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert snapshot(folder) == before


def test_given_wrong_and_missing(site, given):
    folder, add = given
    add("old", "2.13.0")
    site.pin(
        GOOD_PINS + "old==2.14.1\nsphinx==9.0.4\ntorch==2.14.1+cu130\n"
        'always==9.0; python_version > "3"\n'
    )
    before = snapshot(folder)
    done = site.run_plain("--given", "given")
    assert_one_line(done, 1)
    assert done.stderr == (
        "environment: VENV=given does not hold the pins: old 2.13.0 (needs 2.14.1), "
        "sphinx missing (needs 9.0.4), torch 2.14.1+cpu (needs 2.14.1+cu130), "
        "always missing (needs 9.0)\n"
    )
    assert snapshot(folder) == before


def test_given_without_packaging(site, given):
    folder, _ = given
    shutil.rmtree(next(folder.glob("lib/*/site-packages/packaging")))
    site.pin('sphinx==9.0.4; python_version > "3"\n')
    done = site.run_plain("--given", "given")
    assert_one_line(done, 1, "sphinx missing (needs 9.0.4)")


def test_given_does_not_run(site, given):
    folder, _ = given
    assert_one_line(
        site.run_plain("--given", "nowhere"), 1, "VENV=nowhere has no bin/python"
    )
    break_python(folder)
    done = site.run_plain("--given", "given")
    assert_one_line(done, 1, "VENV=given has no bin/python that runs", "without VENV")


def test_given_old_python(site, given):
    folder, _ = given
    pretend = (
        "import sys; sys.version_info = (3, 9, 2); "
        "code, sys.argv[1:] = sys.argv[3], sys.argv[4:]; exec(code)"
    )
    python = folder / "bin" / "python"
    python.unlink()
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{pretend}' \"$@\"\n")
    python.chmod(0o755)
    done = site.run_plain("--given", "given")
    assert_one_line(done, 1, "VENV=given is Python 3.9.2, 3.11 or newer is needed")
