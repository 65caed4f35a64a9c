"""
.. _tut-end-reward:

Learn from a reward at the end
==============================

You will train on a reward that comes only when the episode ends, and see why batches
whose edges are taken for ends teach the actor to fall.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * pay the reward on the last step
        * compare targets with and without an end
        * train on whole episodes and on cut batches
        * test the reason with a control

    .. grid-item-card:: You need

        * :ref:`tut-reinforce`: the same learner, paid on each step
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
# A game is won or lost when it ends. So that CartPole is like that, hold its rewards
# back and pay their sum on the last step. :class:`~torchrl.envs.transforms.RewardSum`
# keeps that sum as ``episode_reward``. One seed, one thread, trained while this page is
# built.


def targets(td):
    after = td["next"]
    reward = after["episode_reward"] * after["done"]
    return reward2go(reward, after["done"], gamma=1.0)


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
# What is a step worth?
# ---------------------
#
# Nothing is discounted, so each step of an episode has the same :term:`target`: the
# reward at its end. Here is the first batch, row after row. Between two ticks stand the
# steps of one env.

_, _, collector = start()
batch = next(iter(collector))
collector.shutdown()
torch.set_num_threads(1)  # closing a SerialEnv may raise it

target = targets(batch)
fig, ax = plt.subplots()
fig.set_label("In each row, targets drop to 0 behind the last end.")
ax.step(range(target.numel()), target.flatten(), where="mid")
_ = ax.set(xlabel="step", ylabel="target", xticks=range(0, 201, 25))

# %%
# Each plateau is an episode, as high as the episode is long. Notice the stretches at 0,
# mostly in front of a tick. They are no failures: the pole stood when the batch ended.

ends_to_come = batch["next", "done"].flip(1).cumsum(1).flip(1)
assert torch.equal(target > 0, ends_to_come > 0)

# %%
# What does the learner make of it?
# ---------------------------------
#
# .. admonition:: Predict
#
#     A fall inside the batch is worth the length of the episode, a pole that stands at
#     the edge nothing. Which actor earns the best targets?
#
#     .. dropdown:: Then look
#
#         One that always falls before the edge. That is what it learns.
#
# The learner is that of :ref:`tut-reinforce`, with one addition: it leaves out steps
# that are not marked for ``use``.


def learn(actor, critic, adam, td):
    td = td[td["use"]]
    if len(td) < 2:
        return
    value, target = critic(td["observation"]), td["target"] / 10
    gain = target - value.detach()
    gain = ((gain - gain.mean()) / (gain.std() + 1e-6)).squeeze(-1)
    likely = actor.get_dist(td).log_prob(td["action"])
    loss = (value - target).square().mean() - (gain * likely).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()


# %%
# Each learner is evaluated as there: 20 episodes that training never saw, and the
# likelier action at each step.


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
# Those marks are for later. At first all steps are used.


def train(name, **options):
    actor, critic, collector = start(**options)
    adam = torch.optim.Adam([*actor.parameters(), *critic.parameters()])
    held, used, curves[name] = [], 0, []
    for td in collector:
        torch.set_num_threads(1)  # at the last turn the env is closed
        td["target"] = targets(td)
        td["use"] = (td["target"] > 0).squeeze(-1) | (name != "ended")
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


# %%
# Nothing but the two options for whole episodes tells the next two learners apart.

curves, scores = {}, {}
train("whole", trajs_per_batch=1, traj_format="cat")
train("cut")

# %%
# On whole episodes the actor learns, although it is told so little. On cut batches it
# ends where falling is fastest. Here is the mean of each over its evaluation.

print(*(f"{name} {sum(scores[name]) / 20:.0f}" for name in scores))
assert sum(scores["whole"]) / 20 > 200
assert sum(scores["cut"]) / 20 < 30

# %%
# Is it because of the zeros?
# ---------------------------
#
# A control: the same cut batches, but a step whose episode does not end in the batch
# teaches nothing. The targets that remain are true.

train("ended")
assert sum(scores["ended"]) > 2 * sum(scores["cut"])

# %%
# This learner sees only the last steps before a fall. It has even less to learn from
# than the one on cut batches, and yet it does not learn to fall. Here is each learner
# in training, as a mean over 20 episodes, and in the evaluation, a stroke for each.

fig, (above, below) = plt.subplots(2, figsize=(5.4, 4.6))
fig.set_label("On cut batches the actor falls fast; the others learn.")
for name in scores:
    x, y = torch.tensor(curves[name]).T
    above.plot(x[19::20], y.unfold(0, 20, 20).mean(1), label=name)
    below.plot(scores[name], [name] * 20, "|", ms=14)
above.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
_ = above.set(xlabel="frames collected", ylabel="return")
_ = below.set(xlabel="evaluation return", xlim=(0, 520), ylim=(-1, 3))

# %%
# Try it
# ------
#
# Another way out: at the edge, pay what the episode has earned so far. Write such
# targets, for a batch with rows. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function of td"
    so_far = batch["next", "episode_reward"][:, -1:]
    assert torch.equal(answer(batch), target.where(target > 0, so_far))


# %%
# .. dropdown:: Solution
#
#     To train on them, write ``targets = answer`` in front of ``train("cut")``. They
#     fit batches with rows only.
#
#     .. code-block:: python
#
#         def answer(td):
#             after = td["next"]
#             pay = after["done"].clone()
#             pay[:, -1] = True
#             reward = after["episode_reward"] * pay
#             return reward2go(reward, after["done"], gamma=1.0)
#
# In practice
# -----------
#
# * One seed is a weak witness. Several stand in :ref:`bench-learning`.
# * Even on whole episodes, learning from one reward at the end is slow and uneven. If
#   your env can pay earlier, let it: :ref:`tut-reinforce`.
# * Leaving steps out keeps the targets true, but not the choice of steps: what is left
#   are the ends of episodes. Whole episodes keep both.
# * Rows of other lengths change the picture: set ``num_envs = 1`` or
#   ``frames_per_batch = 1600`` and run the script with ``python -O``, which skips the
#   asserts.
#
# What you can rely on
# --------------------
#
# * Paid at the end, a step has a target above 0 exactly if its episode ends in the
#   batch.
# * On whole episodes the mean return of 20 unseen episodes is above 200.
# * On cut batches it is below 30.
# * If steps without an end are left out, it is more than twice that of the cut learner.
#
# Next
# ----
#
# If your reward comes at each step, :ref:`tut-reinforce` shows how much a cut matters
# there. To learn before an episode has ended, see :ref:`tut-actor-critic`.
