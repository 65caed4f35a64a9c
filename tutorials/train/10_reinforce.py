"""
.. _tut-reinforce:

Train on whole episodes
=======================

You will train the same networks on whole episodes and on batches whose edges are taken
for ends, and compare the two.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * count the steps that a batch edge cuts
        * write REINFORCE with a baseline
        * train two learners on equal frames
        * write a control

    .. grid-item-card:: You need

        * :ref:`tut-complete`: how to ask for whole episodes
        * :ref:`tut-returns`: what a cut does to a return
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, RewardSum, SerialEnv, TransformedEnv
from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor
from torchrl.objectives.value.functional import reward2go

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)
num_envs = 8
frames_per_batch = 200
total_frames = 32_000

# %%
# An actor picks actions, a critic guesses the return, eight envs share each batch.
# Everything is trained while this page is built, with one seed and one thread.


def start(**options):
    _ = torch.manual_seed(seed)  # all learners start alike
    net, critic = MLP(4, 2, num_cells=[64]), MLP(4, 1, num_cells=[64])
    logits = TensorDictModule(net, ["observation"], ["logits"])
    actor = ProbabilisticActor(
        logits, ["logits"], distribution_class=OneHotCategorical
    )
    env = SerialEnv(num_envs, lambda: GymEnv("CartPole-v1"))
    env = TransformedEnv(env, RewardSum())
    _ = env.set_seed(seed)
    options["frames_per_batch"] = frames_per_batch
    options["auto_register_policy_transforms"] = False
    collector = Collector(
        env, actor, total_frames=total_frames, **options
    )
    return actor, critic, collector


# %%
# How much of a batch is cut?
# ---------------------------
#
# Take the first batch. A step is cut if its episode does not end before the edge.

_, _, collector = start()
batch = next(iter(collector))
collector.shutdown()
torch.set_num_threads(1)  # closing a SerialEnv may raise it

count = torch.arange(batch.shape[1]) + 1
kept = (batch["next", "done"].squeeze(-1) * count).amax(1).tolist()
fig, ax = plt.subplots()
fig.set_label(
    "In each of the envs, the last steps of the batch are cut."
)
ax.barh(range(num_envs), len(count), color="C1", label="cut")
ax.barh(range(num_envs), kept, color="C0", label="ended episodes")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the batch", ylabel="env")
assert sum(kept) < 0.75 * batch.numel()

# %%
# Notice how short the rows are. Eight envs share 200 steps, so each has 25. More than a
# quarter of the steps are cut, and this is an actor that knows nothing and drops the
# pole early. The longer its episodes become, the more is cut: :ref:`tut-returns`.
#
# What do whole episodes give?
# ----------------------------
#
# REINFORCE makes an action more likely if more reward followed than the critic
# expected. What followed is the :term:`return-to-go`. ``reward2go`` takes the last step
# that it gets for an end.


def to_go(td, edge=False):
    done = td["next", "done"] | edge
    return reward2go(td["next", "reward"], done, gamma=0.99)


def learn(actor, critic, adam, td):
    value, target = critic(td["observation"]), td["target"] / 10
    gain = target - value.detach()
    gain = ((gain - gain.mean()) / gain.std()).squeeze(-1)
    likely = actor.get_dist(td).log_prob(td["action"])
    loss = (value - target).square().mean() - (gain * likely).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()


# %%
# Targets are divided by 10, to keep the critic's errors small. The loop waits until it
# holds 200 steps, then makes one update for about 200 of them. It uses each step once.
# The learning rate falls.


def train(name, targets, **options):
    actor, critic, collector = start(**options)
    adam = torch.optim.Adam([*actor.parameters(), *critic.parameters()])
    held, used, curves[name] = [], 0, []
    for td in collector:
        torch.set_num_threads(1)  # at the last turn the env is closed
        td["target"] = targets(td)
        held.append(td.reshape(-1))
        if sum(map(len, held)) >= 200:
            steps, held = torch.cat(held), []
            used += len(steps)
            left = max(0.05, 1 - used / total_frames)
            adam.param_groups[0]["lr"] = 0.004 * left
            order = torch.randperm(len(steps))
            for rows in order.chunk(round(len(steps) / 200)):
                learn(actor, critic, adam, steps[rows])
            ended = steps["next"][steps["next", "done"].squeeze(-1)]
            curves[name] += [(used, r) for r in ended["episode_reward"]]
    scores[name] = evaluate(actor[0])
    return steps["target"].max()


# %%
# The evaluation is 20 episodes with seeds that training never used. Now the actor takes
# its likelier action.


def evaluate(logits):
    env = gym.make_vec("CartPole-v1", 20, vectorization_mode="sync")
    seen, _ = env.reset(seed=10_000)  # 10_001 for the next, and so on
    running, total = torch.ones(20), torch.zeros(20)
    while running.any():
        total += running
        action = logits(torch.as_tensor(seen)).argmax(-1)
        seen, _, fell, timeout, _ = env.step(action.numpy())
        running *= torch.as_tensor(~(fell | timeout))
    env.close()
    return total.tolist()


# %%
# Ask for whole episodes, one at a time, and train.

curves, scores = {}, {}
whole = {"trajs_per_batch": 1, "traj_format": "cat"}
far = train("whole", to_go, **whole)
print(f"mean evaluation return: {sum(scores['whole']) / 20:.0f}")
assert sum(scores["whole"]) / 20 >= 450

# %%
# CartPole ends an episode after 500 steps at the latest. The mean of this actor is
# 450 or more.
#
# What do plain batches give?
# ---------------------------
#
# Leave the two options away, and nothing else.
#
# .. admonition:: Predict
#
#     Each step earns 1, at a discount of 0.99. Now let the actor become perfect. What
#     is the largest target in a row of 25 steps?
#
#     .. dropdown:: Then look
#
#         Less than 22.3: the first step has 25 rewards ahead, and the edge counts as an
#         end. The other learner has targets beyond 60.

near = train("cut", to_go)
assert near < 22.3 and far > 60

# %%
# So this learner is told how far a step is from the edge, not how long the pole will
# stand. Look at the training first: each point is a mean over 20 episodes. Below it
# stands the evaluation, a stroke for each episode.

fig, (above, below) = plt.subplots(2, figsize=(5.4, 4.2))
fig.set_label("Both learners climb; whole episodes reach 450 or more.")
for name in scores:
    frames, earned = torch.tensor(curves[name]).T
    smooth = earned.unfold(0, 20, 5).mean(1)
    above.plot(frames[19::5], smooth, label=name)
    below.plot(scores[name], [name] * 20, "|", ms=14)
above.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = above.set(xlabel="frames learned from", ylabel="return")
_ = below.set(xlabel="evaluation return", xlim=(0, 520), ylim=(-1, 2))

# %%
# Does the edge do harm, then? Do not judge by this figure. It is one seed, and one seed
# is a weak witness. The learner on cut batches may end at the top or at half of it, and
# which one is chance: :ref:`all seeds <bench-learning>`.
#
# .. learning-figure:: reinforce
#
#     Both learners, from ten seeds each. A point is the mean return of an evaluation,
#     its line goes from the worst to the best of 20 episodes. On whole episodes every
#     seed arrives. Notice how far the points of the other column lie apart.
#
# Try it
# ------
#
# The learners differ in two things: their targets, and which steps meet in an update. A
# control changes the targets only. It trains on whole episodes, and lets their targets
# end every 25 steps. Write these targets: a function like ``to_go``, for steps in one
# row. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function of td"
    made = answer(batch.reshape(-1)).reshape(batch.shape)
    assert torch.allclose(made, to_go(batch).squeeze(-1), atol=1e-3)


# %%
# .. dropdown:: Solution
#
#     Behind every 25th step, write an edge. Then run ``train("control", answer,
#     **whole)``, with several seeds.
#
#     .. code-block:: python
#
#         def answer(td):
#             count = torch.arange(len(td)) + 1
#             return to_go(td, edge=(count % 25 == 0).unsqueeze(-1))
#
#
# In practice
# -----------
#
# * A cut hurts where rows are short. With ``num_envs = 1`` a row has 200 steps, and
#   over ten seeds both learners do alike; so they do with eight envs and
#   ``frames_per_batch = 1600``: :ref:`bench-learning`. Try it with ``python -O``, which
#   skips the asserts.
# * Whole episodes have a price: you wait for each to end, short ones come first, and
#   the last unfinished ones are never used. :ref:`tut-complete` counts them.
# * To learn from steps whose episode still runs, let the critic stand for the rest:
#   :ref:`tut-actor-critic`.
# * Two lines of this page set the number of threads back: :ref:`tut-returns` says why.
#
# What you can rely on
# --------------------
#
# * With eight envs, more than a quarter of the first batch is cut.
# * After 32,000 frames of whole episodes the mean return of 20 unseen episodes is at
#   least 450.
# * Cut after 25 steps no target exceeds 22.3; with whole episodes some exceed 60.
#
# Next
# ----
#
# When reward comes only at the end of an episode, the cut decides everything:
# :ref:`tut-end-reward`. To bootstrap instead, see :ref:`tut-actor-critic`.
