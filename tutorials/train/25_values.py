"""
.. _tut-limit-values:

See what a limit does to the values
===================================

You will read two critics, one of which took a time limit for an end, and know where in
your loop targets are made.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * train an actor and a critic on CartPole, twice
        * read the critics along the episode and along the track
        * see why the evaluation does not tell them apart
        * shuffle at the right moment

    .. grid-item-card:: You need

        * :ref:`tut-actor-critic`: the same mistake on Pendulum
"""

import gymnasium
import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, SerialEnv, StepCounter
from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor
from torchrl.modules import ValueOperator as Critic
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)

# %%
# CartPole, with every episode stopped after 50 steps. The actor:

limit = 50
total_frames = 10_000


def make_env():
    return GymEnv("CartPole-v1").append_transform(StepCounter(limit))


def make_actor():
    net = MLP(4, 2, num_cells=[64, 64])
    module = TensorDictModule(net, ["observation"], ["logits"])
    kind = {"distribution_class": OneHotCategorical}
    return ProbabilisticActor(
        module, ["logits"], return_log_prob=True, **kind
    )


# %%
# Eight envs in a collector, and the updates of PPO:


def make_collector(actor):
    env = SerialEnv(8, make_env)
    _ = env.set_seed(seed)
    options = {"auto_register_policy_transforms": False}
    return Collector(env, actor, frames_per_batch=400, **options)


def update(steps, ppo, optimiser):
    for index in torch.randperm(len(steps)).split(100):
        losses = ppo(steps[index])
        optimiser.zero_grad()
        (losses["loss_objective"] + losses["loss_critic"]).backward()
        optimiser.step()


# %%
# The loop. The line below ``if mistake`` takes the limit for an end. Nothing else
# differs.


def train(mistake):
    _ = torch.manual_seed(seed)
    actor, critic = make_actor(), Critic(MLP(4, 1, num_cells=[64, 64]))
    gae = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    options = {"entropy_bonus": False, "normalize_advantage": True}
    ppo = ClipPPOLoss(actor, critic, loss_critic_type="l2", **options)
    optimiser = torch.optim.Adam(ppo.parameters(), lr=3e-3)
    collector = make_collector(actor)
    for _, batch in zip(range(total_frames // 400), collector):
        if mistake:
            batch["next", "terminated"] = batch["next", "done"].clone()
        for _ in range(4):
            update(gae(batch).reshape(-1), ppo, optimiser)
        optimiser.param_groups[0]["lr"] *= 0.89
    collector.shutdown()
    torch.set_num_threads(1)  # closing a SerialEnv may raise it
    return actor, ppo, gae(batch), gae


# %%
# Both train while this page is built, with one seed and one thread.

learners = {"bootstrapped": train(False), "mistaken": train(True)}

# %%
# Look at the last batch of each. Left, along the episode: solid is what the critic
# says, dashed the :term:`target`, what it is told. Right, along the track: what it says
# of a pole that stands still. Grey is where carts have been in the mistaken learner's
# last batch.


def along(batch, key):
    value, step = batch[key], batch["step_count"]
    return [value[step == k].mean().item() for k in range(limit)]


track, said, told = torch.linspace(-2.4, 2.4, 49), [], []
states = torch.stack([track, *torch.zeros(3, 49)], -1)

fig, (left, right) = plt.subplots(1, 2, sharey=True)
fig.set_label("The last target is 1 if mistaken, and above 25 if not.")
for row, (name, (_, _, batch, gae)) in enumerate(learners.items()):
    said.append(along(batch, "state_value"))
    told.append(along(batch, "value_target"))
    left.plot(said[row], c=f"C{row}", label=name)
    left.plot(told[row], "--", c=f"C{row}", label="target")
    value = gae.value_network(observation=states).detach()
    right.plot(track, value)
far = batch["observation"][..., 0].abs().max()
right.axvspan(-far, far, color="lightgray")
fig.legend(ncols=2, loc="outside upper left")
_ = left.set(xlabel="step of the episode", ylabel="value")
_ = right.set(xlabel="position of the cart")

# %%
# What is the critic told at the limit?
# -------------------------------------
#
# At the limit the pole stands as it stood before. The bootstrapped target says so: it
# is about as high as the value. The mistaken target is a single reward.

assert told[0][-1] > 25
assert abs(told[1][-1] - 1) < 0.01

# %%
# .. admonition:: Predict
#
#     Now look at the first step, far from the limit. Is the mistaken critic right
#     there?
#
#     .. dropdown:: Then look
#
#         No, it is too low there as well. It sees no clock. A standing pole gets large
#         targets early and small ones late, and the critic settles between them.

assert said[1][0] < said[0][0] - 3

# %%
# So the mistake does not stay at the limit. A good state loses value everywhere,
# because episodes are stopped in states like it.
#
# Does the evaluation show the mistake?
# -------------------------------------
#
# Twenty unseen episodes of each, now with CartPole's own limit of 500 steps:


def evaluate(actor):
    envs = gymnasium.make_vec("CartPole-v1", 20)
    seen, alive, total = envs.reset(seed=10_000)[0], 1, 0.0
    for _ in range(500):
        logits = actor[0](observation=torch.from_numpy(seen))
        total, action = total + alive, logits.argmax(-1).numpy()
        seen, _, fell, _, _ = envs.step(action)
        alive = alive * ~fell
    envs.close()
    return total.tolist()


scores = {name: evaluate(made[0]) for name, made in learners.items()}

fig, ax = plt.subplots()
fig.set_label(
    "Bootstrapped, every episode outlasts the old limit of 50."
)
for row, score in enumerate(scores.values()):
    ax.plot(score, [-row] * 20, "o", alpha=0.5)
_ = ax.set_yticks([0, -1], scores)
_ = ax.set(xlabel="evaluation return", ylim=(-1.5, 0.5))

# %%
# The bootstrapped learner keeps the pole up for longer than any episode that it trained
# on. One dot is one episode.

for name, score in scores.items():
    print(f"{name}: mean return {sum(score) / 20:.0f}")
assert min(scores["bootstrapped"]) > 50

# %%
# But look at the other row before you praise it. On Pendulum the mistake decided
# everything. Here, from seed to seed, the returns of the two overlap:
# :ref:`bench-learning`. This evaluation asks for something that neither learner has
# trained: where a cart is after 50 steps. Within them none came half way to the edge at
# 2.4. That is the grey band of the first figure; outside it both curves are guesses.

assert far < 1.2

# %%
# So look at the values, and not only at the evaluation, when you suspect your flags.
#
# Where in the loop are targets made?
# -----------------------------------
#
# On the batch as it comes, envs by time, before anything is shuffled. A target is built
# backwards from the steps that follow. After a shuffle, others follow, and most targets
# are off by more than 1.

order = torch.randperm(400)
kept = gae(batch)["value_target"].reshape(-1)
early = gae(batch.reshape(-1)[order])["value_target"].reshape(-1)
off = (early - kept[order]).abs() > 1
assert off.float().mean() > 0.5

# %%
# Once the targets are there, you may shuffle as you like. The loss is a mean over
# single steps.

ppo, steps = learners["mistaken"][1], batch.reshape(-1)
losses = [ppo(td)["loss_critic"] for td in (steps, steps[order])]
assert torch.allclose(*losses, atol=1e-3)

# %%
# Try it
# ------
#
# The mistake turns the task into another one: survive 50 steps. Say that a critic knows
# this task perfectly, and the clock too. What does it say at the first step? Each step
# earns 1, and the discount is 0.99. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number"
    assert abs(answer - sum(0.99**k for k in range(limit))) < 0.1


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = (1 - 0.99**50) / (1 - 0.99)
#
# The mistaken critic of this page has no clock. It settles between that value and 1.
#
# In practice
# -----------
#
# * The line to change is ``limit = 50``: the shorter the limit, the more often a step
#   has the wrong target.
# * Flattening rows before the targets are made is the smaller brother of shuffling:
#   :ref:`tut-bootstrap`. For splitting into episodes, see :ref:`tut-split-keys`.
# * Targets age. This page makes them anew in each of the four rounds on a batch, since
#   the critic has changed.
# * Both critics are still on their way: a pole that never falls is worth 100 at this
#   discount (:ref:`tut-bootstrap`).
#
# What you can rely on
# --------------------
#
# * Bootstrapped, the target at the limit is above 25.
# * With the limit taken for an end, it is 1.
# * The mistaken critic says less at the first step too, by more than 3.
# * Every evaluation episode of the bootstrapped learner outlasts the limit of 50.
# * In the last batch no cart comes half way to the edge.
# * Shuffled first, more than half of the targets are off by more than 1.
# * Shuffled afterwards, the loss of the critic is the same.
#
# Next
# ----
#
# :ref:`tut-slice-training` trains a critic from a replay buffer. If you want to learn
# without a critic, go to :ref:`tut-reinforce`.
