"""
.. _tut-actor-critic:

Bootstrap at the limit, not at the end
======================================

You will train an actor and a critic under a short time limit, and see one wrong line
keep them from learning.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * collect episodes that a time limit stops
        * take the limit for an end, with one line
        * train PPO with and without that line
        * evaluate both on episodes that neither has seen

    .. grid-item-card:: You need

        * :ref:`tut-bootstrap`: which flag decides a target
"""

import gymnasium
import matplotlib.pyplot as plt
import torch
from tensordict import nn as tdnn
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, SerialEnv, StepCounter
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal
from torchrl.modules import ValueOperator as Critic
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)

# %%
# A pendulum hangs from a motor that is too weak to lift it at once. It has to swing up,
# and then stand. You stop every episode after 50 steps. Here are the limit, the env and
# an actor:

limit = 50
total_frames = 16_000


def make_env():
    return GymEnv("Pendulum-v1").append_transform(StepCounter(limit))


def make_actor():
    scale = tdnn.AddStateIndependentNormalScale(1)
    net = torch.nn.Sequential(MLP(3, 1, num_cells=[64, 64]), scale)
    return ProbabilisticActor(
        tdnn.TensorDictModule(net, ["observation"], ["loc", "scale"]),
        ["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": -2.0, "high": 2.0},
        return_log_prob=True,
    )


# %%
# Eight such envs, and a batch of an actor that has learned nothing:


def make_collector(actor):
    env = SerialEnv(8, make_env)
    _ = env.set_seed(seed)
    options = {"auto_register_policy_transforms": False}
    return Collector(env, actor, frames_per_batch=800, **options)


collector = make_collector(make_actor())
batch = next(iter(collector))
collector.shutdown()
torch.set_num_threads(1)  # closing a SerialEnv may raise it

fig, ax = plt.subplots()
fig.set_label("Three heights stop at step 50, and start elsewhere.")
reset = batch["step_count"][:3, :, 0] == 0  # no line leads there
ax.plot(batch["observation"][:3, :, 0].masked_fill(reset, torch.nan).T)
_ = ax.set(xlabel="step", ylabel="height", xlim=(0, 101))

# %%
# Are these ends?
# ---------------
#
# You see three of the eight pendulums. At step 50 you stop them, and each starts anew
# elsewhere. Nothing in the pendulum gave a reason. The flags say so too: every stop is
# your limit and :term:`truncated`, none is :term:`terminated`.

after = batch["next"]
assert torch.equal(after["truncated"], after["step_count"] == 50)
assert not after["terminated"].any()

# %%
# Say that your code knows one flag, and one line writes ``done`` into ``terminated``.
# Then one step in fifty loses its :term:`bootstrap`: its target is its reward
# (:ref:`tut-bootstrap`). Does so small a thing matter?
#
# Which learner swings the pendulum up?
# -------------------------------------
#
# The learning part is PPO: a critic, targets from
# :class:`~torchrl.objectives.value.GAE`, and :class:`~torchrl.objectives.ClipPPOLoss`
# on 200 steps at a time, shuffled.


def update(steps, ppo, optimiser):
    for index in torch.randperm(len(steps)).split(200):
        losses = ppo(steps[index])
        optimiser.zero_grad()
        (losses["loss_objective"] + losses["loss_critic"]).backward()
        _ = torch.nn.utils.clip_grad_norm_(ppo.parameters(), 1.0)
        optimiser.step()


# %%
# Each batch serves eight times, and gets new targets each time. The two learners differ
# in the line below ``if mistake`` and in nothing else: both start with the same
# networks, both run for 16,000 steps.


def train(mistake):
    _ = torch.manual_seed(seed)
    actor, critic = make_actor(), Critic(MLP(3, 1, num_cells=[64, 64]))
    gae = GAE(gamma=0.95, lmbda=0.95, value_network=critic)
    options = {"entropy_bonus": False, "normalize_advantage": True}
    ppo = ClipPPOLoss(actor, critic, **options)
    optimiser = torch.optim.Adam(ppo.parameters(), lr=5e-3)
    collector, curve = make_collector(actor), []
    for _, batch in zip(range(total_frames // 800), collector):
        curve.append(batch["next", "reward"].mean().item())
        batch["next", "reward"] *= 0.1  # keeps the values small
        if mistake:
            batch["next", "terminated"] = batch["next", "done"].clone()
        for _ in range(8):
            update(gae(batch).reshape(-1), ppo, optimiser)
        optimiser.param_groups[0]["lr"] *= 0.86
    collector.shutdown()
    torch.set_num_threads(1)
    return actor, curve, gae(batch)


# %%
# The evaluation: twenty episodes from starts that neither has seen, without noise, and
# with Pendulum's own limit of 200 steps. Who stands upright from the first step on has
# a return of 0; all others have less.


def evaluate(actor):
    envs = gymnasium.make_vec("Pendulum-v1", 20)
    seen, total = envs.reset(seed=10_000)[0], 0
    for _ in range(200):
        loc, _ = actor[0](observation=torch.from_numpy(seen))
        seen, reward, *_ = envs.step(2 * loc.tanh().detach().numpy())
        total = total + reward
    envs.close()
    return total.tolist()


# %%
# Both train while this page is built, with one seed and one thread.
#
# .. admonition:: Predict
#
#     The mistake touches one step in fifty, and the evaluation knows nothing of your
#     limit. How far behind is the mistaken learner?
#
#     .. dropdown:: Then look
#
#         So far that it never learns to swing up.

learners = {"bootstrapped": train(False), "mistaken": train(True)}
scores = {name: evaluate(made[0]) for name, made in learners.items()}
print("means", means := [round(sum(s) / 20) for s in scores.values()])

fig, (left, right) = plt.subplots(1, 2)
fig.set_label("Bootstrapped, rewards climb and returns are far better.")
for row, (name, (_, curve, _)) in enumerate(learners.items()):
    left.plot(curve, label=f"{name}: {means[row]}")
    right.plot([row] * 20, scores[name], "o", alpha=0.5)
fig.legend(ncols=2, loc="outside upper left")
_ = left.set(xlabel="batch", ylabel="reward a step")
_ = right.set(ylabel="evaluation return", xlim=(-1, 2), xticks=[])

# %%
# Left, the rewards while they train. Right, the evaluation: one dot is one episode, and
# the numbers above are the means. The bootstrapped learner swings up and stands.

assert means[0] > -250

# %%
# The mistaken one has not learned to. Its best episode is worse than the worst of the
# other.

assert means[1] < -600
assert max(scores["mistaken"]) < min(scores["bootstrapped"])

# %%
# What does the mistaken critic say?
# ----------------------------------
#
# Take the last batch of each learner and go along the episode. Solid is what the critic
# says, dashed is the :term:`target` that it is trained towards.


def along(batch, key):
    value, step = batch[key], batch["step_count"]
    return [value[step == k].mean().item() for k in range(limit)]


(fig, ax), gaps = plt.subplots(), []
fig.set_label("The mistaken value stays far below the last target.")
for row, (name, (_, _, batch)) in enumerate(learners.items()):
    said = along(batch, "state_value")
    told = along(batch, "value_target")
    ax.plot(said, c=f"C{row}", label=name)
    ax.plot(told, "--", c=f"C{row}", label="target")
    gaps.append(told[-1] - said[-1])
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the episode", ylabel="value")

# %%
# The bootstrapped critic says what it is told, up to the last step. The mistaken one is
# told two things. At the limit, the target is one reward; earlier, the costs of all
# that follows. The critic sees the pendulum and not the step, so it cannot tell which
# of the two applies, and settles between them. Notice the gap at the right end:

assert abs(gaps[0]) < 1 and gaps[1] > 3

# %%
# Target minus value is the advantage, and PPO takes it for merit. So at the limit it
# praises whatever the actor happened to do. That is one way in which the mistake
# reaches the actor.
#
# Try it
# ------
#
# At how many of all the steps that it trained on did the mistaken learner lose its
# bootstrap? Replace ``None``.

answer = None


def check(answer):
    assert answer == total_frames // limit, "count the limits"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 8 * (16_000 // 8 // 50)  # 320: eight envs, 2000 steps
#
# In practice
# -----------
#
# * The line to change is ``limit = 50``. With Pendulum's own limit, 200, fewer targets
#   are wrong and the mistake costs less. :ref:`bench-learning` runs both limits
#   over several seeds.
# * To do it right you need no line of your own. ``StepCounter``, gymnasium's limits and
#   the collector's ``max_frames_per_traj`` all write ``truncated``: :ref:`tut-ends`.
#   The mistake comes with envs that have one flag (:ref:`tut-own-ends`) and with stored
#   data.
# * The number of threads is set back after each collector: :ref:`tut-returns` says why.
# * The rewards are scaled by 0.1 for training, and so are the values in the last
#   figure.
# * Learners without a critic have nothing to bootstrap with: :ref:`tut-reinforce`.
#
# What you can rely on
# --------------------
#
# * A ``StepCounter`` of 50 truncates at the fiftieth step, and nowhere else.
# * It terminates no episode.
# * Bootstrapped at the limit, the mean evaluation return is above -250.
# * With the limit taken for an end, it is below -600.
# * No episode of the mistaken learner is as good as the worst of the other.
# * At the limit, the bootstrapped critic is within 1 of its target, and the mistaken
#   critic more than 3 below it.
#
# Next
# ----
#
# :ref:`tut-limit-values` looks at the same mistake where the returns overlap. If you
# collect whole episodes, go to :ref:`tut-complete`.
