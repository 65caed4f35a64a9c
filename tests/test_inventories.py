"""The committed intersphinx inventories are true and up to date."""

from __future__ import annotations

import builtins
import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import make_inventories
import pytest
import sphobjinv

SCRIPT = Path(make_inventories.__file__)
FOLDER = SCRIPT.parent
HOSTS = {
    "python": "docs.python.org",
    "torch": "docs.pytorch.org",
    "tensordict": "docs.pytorch.org",
    "torchrl": "docs.pytorch.org",
    "gymnasium": "gymnasium.farama.org",
}

PYTHON = "https://docs.python.org/3/library/"
TORCH = "https://docs.pytorch.org/docs/stable/"
TENSORDICT = "https://docs.pytorch.org/tensordict/stable/reference/generated/"
TORCHRL = "https://docs.pytorch.org/rl/stable/reference/generated/"
GYMNASIUM = "https://gymnasium.farama.org/api/"

EXPECTED = [
    ("python", "class", "bool", PYTHON + "functions.html#bool"),
    ("python", "class", "dict", PYTHON + "stdtypes.html#dict"),
    ("python", "function", "print", PYTHON + "functions.html#print"),
    ("python", "method", "str.join", PYTHON + "stdtypes.html#str.join"),
    ("python", "exception", "ImportError", PYTHON + "exceptions.html#ImportError"),
    (
        "python",
        "function",
        "warnings.catch_warnings",
        PYTHON + "warnings.html#warnings.catch_warnings",
    ),
    (
        "python",
        "class",
        "warnings.catch_warnings",
        PYTHON + "warnings.html#warnings.catch_warnings",
    ),
    (
        "python",
        "module",
        "multiprocessing",
        PYTHON + "multiprocessing.html#module-multiprocessing",
    ),
    ("python", "class", "threading.Thread", PYTHON + "threading.html#threading.Thread"),
    (
        "torch",
        "function",
        "torch.manual_seed",
        TORCH + "generated/torch.manual_seed.html#torch.manual_seed",
    ),
    (
        "torch",
        "function",
        "torch.histc",
        TORCH + "generated/torch.histc.html#torch.histc",
    ),
    (
        "torch",
        "function",
        "torch.unique_consecutive",
        TORCH + "generated/torch.unique_consecutive.html#torch.unique_consecutive",
    ),
    ("torch", "class", "torch.Tensor", TORCH + "tensors.html#torch.Tensor"),
    (
        "torch",
        "method",
        "torch.Tensor.index_add_",
        TORCH + "generated/torch.Tensor.index_add_.html#torch.Tensor.index_add_",
    ),
    (
        "torch",
        "class",
        "torch.nn.Flatten",
        TORCH
        + "generated/torch.nn.modules.flatten.Flatten.html"
        + "#torch.nn.modules.flatten.Flatten",
    ),
    (
        "torch",
        "class",
        "torch.distributions.Categorical",
        TORCH + "distributions.html#torch.distributions.categorical.Categorical",
    ),
    (
        "tensordict",
        "class",
        "tensordict.TensorDict",
        TENSORDICT + "tensordict.TensorDict.html#tensordict.TensorDict",
    ),
    (
        "tensordict",
        "method",
        "tensordict.TensorDict.update",
        TENSORDICT
        + "tensordict.TensorDictBase.update.html#tensordict.TensorDictBase.update",
    ),
    (
        "torchrl",
        "method",
        "torchrl.collectors.Collector.shutdown",
        TORCHRL
        + "torchrl.collectors.Collector.html#torchrl.collectors.Collector.shutdown",
    ),
    (
        "torchrl",
        "class",
        "torchrl.envs.GymEnv",
        TORCHRL + "torchrl.envs.GymEnv.html#torchrl.envs.GymEnv",
    ),
    (
        "torchrl",
        "class",
        "torchrl.envs.StepCounter",
        TORCHRL
        + "torchrl.envs.transforms.StepCounter.html"
        + "#torchrl.envs.transforms.StepCounter",
    ),
    (
        "torchrl",
        "function",
        "torchrl.collectors.utils.split_trajectories",
        TORCHRL
        + "torchrl.collectors.utils.split_trajectories.html"
        + "#torchrl.collectors.utils.split_trajectories",
    ),
    (
        "torchrl",
        "class",
        "torchrl.data.SliceSampler",
        TORCHRL
        + "torchrl.data.replay_buffers.SliceSampler.html"
        + "#torchrl.data.replay_buffers.SliceSampler",
    ),
    (
        "torchrl",
        "class",
        "torchrl.modules.RandomPolicy",
        TORCHRL
        + "torchrl.modules.tensordict_module.RandomPolicy.html"
        + "#torchrl.modules.tensordict_module.RandomPolicy",
    ),
    ("gymnasium", "class", "gymnasium.Env", GYMNASIUM + "env/#gymnasium.Env"),
    (
        "gymnasium",
        "class",
        "gymnasium.wrappers.TimeLimit",
        GYMNASIUM + "wrappers/misc_wrappers/#gymnasium.wrappers.TimeLimit",
    ),
]

HEADER = (
    b"# Sphinx inventory version 2\n# Project: project\n# Version: 1\n"
    b"# The remainder of this file is compressed using zlib.\n"
)

# Prints each name, of those given line by line, that stands for nothing installed.
# Some attributes are only annotated in their class.
RESOLVE = """
import pkgutil
import sys

for name in sys.stdin.read().split():
    try:
        pkgutil.resolve_name(name)
    except AttributeError:
        owner, _, member = name.rpartition(".")
        bases = getattr(pkgutil.resolve_name(owner), "__mro__", ())
        if not any(member in vars(b).get("__annotations__", ()) for b in bases):
            print(name)
"""


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which may import the large packages."""
    return subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=os.environ | {"RL_LOGGING_LEVEL": "WARNING"},
        timeout=300,
        check=False,
    )


def read(name: str) -> sphobjinv.Inventory:
    """Return a committed inventory."""
    return sphobjinv.Inventory(FOLDER / f"{name}.inv")


def test_committed_inventories_are_up_to_date():
    result = run(str(SCRIPT), "--check")
    assert (result.returncode, result.stdout) == (0, ""), result.stderr


def test_check_names_an_inventory_that_was_tampered_with(tmp_path):
    folder = tmp_path / "inventories"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    changed = folder / "torchrl.inv"
    text = sphobjinv.decompress(changed.read_bytes())
    changed.write_bytes(sphobjinv.compress(text.replace(b"Collector", b"Collektor")))
    before = {path: path.read_bytes() for path in folder.glob("*.inv")}

    result = run(str(folder / SCRIPT.name), "--check")

    assert result.returncode == 1, result.stderr
    assert len(result.stdout.splitlines()) == 1
    assert "torchrl.inv" in result.stdout
    assert before == {path: path.read_bytes() for path in folder.glob("*.inv")}


@pytest.mark.parametrize("content", [None, b"", b"text", HEADER + b"not packed"])
def test_a_file_that_holds_no_inventory_counts_as_different(tmp_path, content):
    path = tmp_path / "broken.inv"
    if content is not None:
        path.write_bytes(content)
    assert make_inventories.committed_text(path) is None


def test_every_entry_stands_for_something_installed():
    names = set()
    for project in HOSTS:
        for entry in read(project).objects:
            # Only built-in names are entered without their module.
            root = entry.name.partition(".")[0]
            builtin = project == "python" and hasattr(builtins, root)
            names.add(f"builtins.{entry.name}" if builtin else entry.name)

    result = run("-c", RESOLVE, stdin="\n".join(sorted(names)))

    assert (result.returncode, result.stdout) == (0, ""), result.stderr


@pytest.mark.parametrize(("project", "role", "name", "address"), EXPECTED)
def test_name_leads_to_its_public_page(project, role, name, address):
    found = [
        urljoin(make_inventories.PROJECTS[project].base, entry.uri_expanded)
        for entry in read(project).objects
        if (entry.domain, entry.role, entry.name) == ("py", role, name)
    ]
    assert found == [address]


@pytest.mark.parametrize(("project", "host"), HOSTS.items())
def test_addresses_are_on_the_public_host(project, host):
    base = make_inventories.PROJECTS[project].base
    for entry in read(project).objects:
        parts = urlsplit(urljoin(base, entry.uri_expanded))
        assert (parts.scheme, parts.netloc) == ("https", host), entry.name
        assert parts.geturl().startswith(base), entry.name


def test_all_inventories_are_committed_and_small():
    sizes = {path.stem: path.stat().st_size for path in FOLDER.glob("*.inv")}
    assert sizes.keys() == make_inventories.PROJECTS.keys() == HOSTS.keys()
    assert max(sizes.values()) < 60_000
    assert sum(sizes.values()) < 150_000
