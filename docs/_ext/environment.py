"""Make or check the Python environment that builds the site.

``python3 docs/_ext/environment.py .venv`` makes or renews it from ``requirements.txt``
and ``constraints.txt``, and does nothing when it is up to date. ``--given PATH`` checks
one that the reader brings, and never changes it. A failure is one line on stderr and
exit code 1 (130 when interrupted), and leaves no half-made folder behind.

Any Python may run this file, so it uses the standard library alone and parses on
Python 3.6: an older Python then gets a clear line instead of a syntax error.
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
# The packages take 6.2 GB unpacked; about 3.3 GB of archives lie beside them meanwhile.
NEEDED_GB = 10
LOCK_SECONDS = 15 * 60
MAKE_SECONDS = 20 * 60
PROBE_SECONDS = 30

KEY_NAME = "pins.key"  # written last: a folder without it is half-made
SCRATCH_NAME = "pins.making"  # made first: a folder with it is ours to remove

ENSURE_PIP = ["-m", "ensurepip", "--default-pip"]
INSTALL = [
    *("-m", "pip", "install", "-q", "-r", "requirements.txt", "-c", "constraints.txt"),
    # Without these, pip could wait for an answer or a dead network for ever.
    *("--no-input", "--retries", "2", "--timeout", "60", "--disable-pip-version-check"),
]

PIN = re.compile(r"([\w.-]+)\s*(?:\[[^]]*\])?\s*={2,3}\s*([\w.!+-]+)\s*(?:;(.*))?")
NO_SPACE = re.compile(r"\[Errno 28\]|No space left on device|Disk quota exceeded")
# Not the warning of a retry with more in hand: the next one may have worked.
NO_NETWORK = re.compile(
    r"^(?!.*Retry\(total=[1-9]).*(?:NewConnectionError|NameResolution|ConnectTimeout"
    r"|ReadTimeout|ProxyError|SSLError|Connection ?(?:Error|Reset|refused|aborted)"
    r"|Failed to connect|timed out|name resolution|Name or service not known"
    r"|nodename nor servname|Network is unreachable|No route to host)",
    re.IGNORECASE | re.MULTILINE,
)
NO_MATCH = re.compile(r"No matching distribution found for (.+)")
# On a conflict pip's last error is only a link; the one before names the packages.
ERROR = re.compile(r"^ERROR: (?!ResolutionImpossible)(.+)", re.I | re.M)

# Runs inside the environment to be checked, whatever its version of Python.
PROBE = """
import json, sys
rows = []
if sys.version_info >= (3, 8):
    from importlib import metadata
    for name, needed, marker in json.loads(sys.argv[1]):
        try:
            from packaging.markers import Marker
            if marker and not Marker(marker).evaluate():
                continue
        except ImportError:
            pass  # Sphinx brings it: where it is missing, so are pins without marker.
        try:
            rows.append((name, needed, metadata.version(name)))
        except metadata.PackageNotFoundError:
            rows.append((name, needed, None))
print(json.dumps([sys.version_info[:3], rows]))
"""


class MakeError(Exception):
    """A failure, told as what went wrong, where, and what to do."""

    status = 1


class StoppedError(MakeError):
    """A signal asked to stop."""

    status = 130


def dotted(version):
    """Return the first three numbers of ``version`` as in ``3.11.7``."""
    return ".".join(str(number) for number in version[:3])


def read(root, name):
    """Return the text of the file ``name`` in ``root``; raise MakeError without it."""
    try:
        return (root / name).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        line = f"{name} is missing; restore it with: git checkout {name}"
        raise MakeError(line) from None


def current_key(root):
    """Return the key of the environment that ``root`` asks for; raise MakeError."""
    texts = [read(root, name) for name in ("requirements.txt", "constraints.txt")]
    parts = [*texts, dotted(sys.version_info), os.uname().machine, sys.platform]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def is_current(target, key):
    """Return whether the folder ``target`` holds ``key`` and a Python that runs."""
    try:
        if (target / KEY_NAME).read_text(encoding="utf-8") != key:
            return False
        # The key outlives its Python when that one is moved or upgraded.
        nothing = [target / "bin" / "python", "-I", "-S", "-c", ""]
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return not subprocess.call(nothing, timeout=PROBE_SECONDS, **silent)
    except (OSError, subprocess.TimeoutExpired):
        return False


def read_pins(root):
    """Return ``(name, version, marker)`` for each exact pin of requirements.txt.

    Raises MakeError if that file is missing.
    """
    lines = read(root, "requirements.txt").replace("\\\n", " ").splitlines()
    # Up to a comment, or the hashes of a pin.
    pins = (PIN.fullmatch(re.split(r"(?:^|\s)(?:#|--)", x)[0].strip()) for x in lines)
    return [(re.sub(r"[-_.]+", "-", p[1]).lower(), p[2], p[3]) for p in pins if p]


def satisfies(found, needed):
    """Return whether ``found`` is the pin: 2.14.1+cpu is 2.14.1, and 1.0 is 1."""
    if "+" not in needed:
        found = found.split("+")[0]
    return re.sub(r"(\.0)+$", "", found) == re.sub(r"(\.0)+$", "", needed)


def check_pins(path, root, name):
    """Raise MakeError unless the environment ``path`` holds the pinned packages.

    ``name`` is what the message calls it.
    """
    python, pins = Path(path, "bin", "python"), json.dumps(read_pins(root))
    silent = dict.fromkeys(("stdin", "stderr"), subprocess.DEVNULL)
    advice = "give another environment, or run make without VENV"
    try:
        output = subprocess.check_output(
            # Without -B, even this import could write into the environment.
            [python, "-B", "-c", PROBE, pins],
            timeout=PROBE_SECONDS,
            **silent,
        )
        version, rows = json.loads(output.splitlines()[-1].decode())
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        raise MakeError(f"{name} has no bin/python that runs; {advice}") from None
    if tuple(version) < OLDEST:
        line = f"{name} is Python {dotted(version)}, 3.11 or newer is needed; {advice}"
        raise MakeError(line)
    wrong = [
        f"{package} {found or 'missing'} (needs {needed})"
        for package, needed, found in rows
        if not found or not satisfies(found, needed)
    ]
    if wrong:
        raise MakeError(f"{name} does not hold the pins: {', '.join(wrong)}")


def explain(output, venv):
    """Return the one line on what the ``output`` of a failed command means."""
    if NO_SPACE.search(output):
        what = f"no space left on the disk while making {venv}"
        return f"{what}; free {NEEDED_GB} GB, then run make again"
    if NO_NETWORK.search(output):
        what = f"no network: pip could not reach its package index to fill {venv}"
        return f"{what}; check the connection or proxy, then run make again"
    if NO_MATCH.search(output):
        what = f"no package found for {NO_MATCH.search(output)[1]}, needed in {venv}"
        return f"{what}; correct the pin in requirements.txt or constraints.txt"
    told = (ERROR.findall(output) or output.strip().splitlines())[-1].strip(" .\r")
    # Of an absolute path only the last part: the rest speaks of this machine.
    told = re.sub(r"(?<![\w:/.~])(?:/[^\s/'\":]+)*/(?=[^\s/'\":])", "", told)[:300]
    return f"{venv} is not ready: {told}; correct this, then run make again"


@contextlib.contextmanager
def stoppable(venv):
    """Give a function ``check(deadline, line)`` to call while waiting.

    It raises StoppedError after a signal, MakeError with ``line`` after the deadline.
    """
    stops = []
    previous = {}

    def check(deadline, line):
        if stops:
            raise StoppedError(f"interrupted, {venv} is not made; run make again")
        if time.monotonic() > deadline:
            raise MakeError(f"{line}, then run make again")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # One that is ignored stays so: that is how nohup works.
        if signal.getsignal(number) != signal.SIG_IGN:
            # Noted, not raised: raising could lose a child that is just starting.
            previous[number] = signal.signal(number, lambda n, _: stops.append(n))
    try:
        yield check
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def locked(target, venv, check):
    """Hold a lock file beside ``target``, give its descriptor, and remove it.

    Raises MakeError or StoppedError through ``check`` while another run holds it.
    """
    path = target.with_name(target.name + ".lock")
    deadline = time.monotonic() + LOCK_SECONDS
    late = f"another run still makes {venv} after {LOCK_SECONDS / 60:.0f} minutes"
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last holder may have removed the file since it was opened here.
            if os.path.samestat(os.fstat(lock), path.stat()):
                break
        os.close(lock)
        check(deadline, f"{late}; end that one")
        time.sleep(0.1)
    try:
        yield lock
    finally:
        path.unlink()
        os.close(lock)


def run(command, venv, root, check, **options):
    """Run ``command`` in ``root`` with ``options`` of Popen.

    Raises MakeError if it fails, or what ``check`` raises meanwhile.
    """
    child = subprocess.Popen(
        command,
        cwd=root,
        stdin=subprocess.DEVNULL,
        # To a pipe: a file could not be written on a full disk.
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A group of its own, to be ended with all that it started.
        start_new_session=True,
        **options,
    )
    try:
        output = None
        while output is None:
            check()
            with contextlib.suppress(subprocess.TimeoutExpired):
                output = child.communicate(timeout=0.1)[0].decode("utf-8", "replace")
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    if child.returncode:
        ended = f"{command[3]} ended with status {child.returncode}"
        raise MakeError(explain(output.strip() or ended, venv))


def fill(target, venv, root, lock, check):
    """Make the environment ``target``, all but its key; raise MakeError on failure."""
    free = shutil.disk_usage(target.parent).free / 1e9
    if free < NEEDED_GB:
        what = f"no space: {venv} needs {NEEDED_GB} GB, its disk has {free:.1f} GB"
        raise MakeError(f"{what}; free some, then run make again")
    scratch = target / SCRATCH_NAME
    target.mkdir()
    scratch.mkdir()
    deadline = time.monotonic() + MAKE_SECONDS
    late = f"{venv} was not complete after {MAKE_SECONDS / 60:.0f} minutes"
    # The base Python: sys.executable itself may lie in the folder just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    python = target / "bin" / "python"
    for interpreter, arguments in (
        (base, ["-m", "venv", "--without-pip", target]),
        (python, ENSURE_PIP),
        (python, INSTALL),
    ):
        run(
            # Isolated: what PYTHONPATH offers must not count as installed.
            [interpreter, "-I", *arguments],
            venv,
            root,
            lambda: check(deadline, f"{late}; check network and disk"),
            # Scratch files go where the space was checked and the clean-up reaches;
            # the messages come in the language that explain() reads.
            env=dict(os.environ, TMPDIR=str(scratch), LC_ALL="C.UTF-8"),
            # If this process is killed outright, pip still holds the lock.
            pass_fds=[lock],
        )
    shutil.rmtree(scratch)
    check_pins(target, root, venv)


def check_possible(target, venv, root):
    """Raise MakeError if ``target`` is not ours to replace, or Python lacks venv."""
    if not target.parent.is_dir():
        raise MakeError(f"the folder to hold {venv} is missing; make it first")
    if target.exists():
        signs = {"pyvenv.cfg", KEY_NAME, SCRATCH_NAME}
        names = {path.name for path in target.iterdir()} if target.is_dir() else {""}
        foreign = names and not names & signs
        # The repository may lie inside some other environment.
        if foreign or root.is_relative_to(target):
            what = f"{venv} exists and is not an environment for this site"
            raise MakeError(f"{what}; move it away, then run make again")
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        what = f"this Python lacks venv or ensurepip, needed to make {venv}"
        advice = "install python3-venv (Debian, Ubuntu) or pass PYTHON=/path/to/python3"
        raise MakeError(f"{what}; {advice}")


def remove(folder):
    """Remove ``folder``, even while the last writes of an ended child arrive."""
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(0.1)


def make(venv, root):
    """Bring the environment ``venv`` up to date; raise MakeError if that fails."""
    # Through a symbolic link: the folder may live on another disk.
    target = Path(venv).resolve()
    if is_current(target, current_key(root)):
        return
    check_possible(target, venv, root)
    with stoppable(venv) as check, locked(target, venv, check) as lock:
        # Another run may have made it meanwhile.
        key = current_key(root)
        if is_current(target, key):
            return
        check_possible(target, venv, root)
        started = time.monotonic()
        about = "with the pinned packages (about 6 GB, a minute or more)"
        print(f"making {venv} {about} ...", flush=True)
        remove(target)
        try:
            fill(target, venv, root, lock, check)
            check(float("inf"), "")
            (target / KEY_NAME).write_text(key, encoding="utf-8")
        except BaseException:
            remove(target)
            raise
        print(f"made {venv} in {time.monotonic() - started:.0f} s", flush=True)


def main(arguments):
    """Run with the command line ``arguments`` and return the exit code."""
    if sys.version_info < OLDEST:
        is_old = f"{Path(sys.executable).name} is {dotted(sys.version_info)}"
        advice = "pass PYTHON=/path/to/python3.11"
        line = f"Python 3.11 or newer is needed, {is_old}; {advice}"
        print(f"environment: {line}", file=sys.stderr)
        return 1
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=root, help="the folder of requirements.txt")
    use = parser.add_mutually_exclusive_group(required=True)
    use.add_argument("venv", nargs="?", help="the environment to make or renew")
    use.add_argument("--given", metavar="PATH", help="an environment to check")
    options = parser.parse_args(arguments)
    root = Path(options.root).resolve()
    try:
        if options.given:
            check_pins(options.given, root, f"VENV={options.given}")
        else:
            make(options.venv, root)
        return 0
    except MakeError as failure:
        line, status = failure, failure.status
    except KeyboardInterrupt:
        line, status = "interrupted; run make again", StoppedError.status
    except OSError as failure:
        reason = f"[Errno {failure.errno}] {failure.strerror}: {failure.filename}"
        line, status = explain(reason, options.venv or options.given), 1
    print(f"environment: {line}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
