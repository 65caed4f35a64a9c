"""Make the intersphinx inventories beside this file from the installed packages.

The names come from the packages as they are installed, the addresses from the
way each project publishes its documentation. Nothing is fetched.

Usage::

    python docs/_inventories/make_inventories.py           # write the inventories
    python docs/_inventories/make_inventories.py --check   # only compare them
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import sphobjinv

HERE = Path(__file__).resolve().parent

# Which members of a class its public page describes.
OWN = "own"
INHERITED = "inherited"


@dataclass(frozen=True)
class Pages:
    """Names of one module, and the public page that describes each of them.

    ``page`` and ``member_page`` are addresses below the project's own. They may
    use ``{module}``, ``{name}`` and ``{home}`` (the module that defines the
    object); ``member_page`` may use ``{member}`` too.
    """

    module: str
    page: str
    names: str | None = None  # separated by blanks; None stands for all public names
    without: str = ""  # patterns of names, or of Class.member, that have no page
    only: str | None = None  # the one role to enter
    documented: bool = False  # whether to leave out what has no docstring
    members: str | None = None  # OWN, INHERITED, or none at all
    member_page: str | None = None  # by default, on the page of the class
    every_member: bool = False  # whether members without a docstring are described


@dataclass(frozen=True)
class Project:
    """A documented project: where it is published and what to enter of it."""

    base: str
    distribution: str | None  # None for Python itself
    pages: tuple[Pages, ...]
    modules: dict[str, str] = field(default_factory=dict)  # module -> address
    # Modules that export under another name what ``pages`` describes.
    aliases: tuple[str, ...] = ()


# --- Python -------------------------------------------------------------------

# Modules whose public names are all on the module's own page, but for the named.
PYTHON_MODULES = {
    "collections": "",
    "collections.abc": "",
    "contextlib": "",
    "copy": "",
    "dataclasses": "InitVar",
    "faulthandler": "",
    "functools": "WRAPPER_*",
    "gc": "",
    "inspect": (
        "ArgInfo Arguments Attribute BlockFinder CORO_* CO_NOFREE "
        "ClassFoundException ClosureVars EndOfBlock FullArgSpec GEN_* TPFLAGS_* "
        "classify_class_attrs findsource formatannotation* getabsfile getargs "
        "getblock getlineno indentsize walktree"
    ),
    "itertools": "",
    "logging": (
        "BASIC_FORMAT CRITICAL DEBUG ERROR FATAL FileHandler INFO NOTSET NullHandler "
        "StreamHandler WARN WARNING fatal raiseExceptions warn"
    ),
    "math": "",
    "multiprocessing": (
        "Pool RawArray RawValue allow_connection_pickling reducer "
        "set_forkserver_preload"
    ),
    "multiprocessing.shared_memory": "",
    "os": (
        "NGROUPS_MAX O_ACCMODE O_LARGEFILE SEEK_DATA SEEK_HOLE ST_* TMP_MAX path "
        "*_result"
    ),
    "os.path": "altsep curdir defpath devnull extsep pardir pathsep sep",
    "pathlib": "",
    "queue": "",
    "random": "",
    "signal": (
        "SIGIO SIGIOT SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTOP "
        "SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGVTALRM SIGXCPU SIGXFSZ "
        "default_int_handler struct_siginfo"
    ),
    "subprocess": "",
    "sys": "",
    "tempfile": "TMP_MAX",
    "threading": "ThreadError ExceptHookArgs",
    "time": "",
    "traceback": "",
    "typing": "",
    "warnings": "",
    "weakref": "",
}

# Classes whose own public members have anchors, but for the named.
PYTHON_MEMBERS = {
    "collections": ("Counter deque", "Counter.copy"),
    "contextlib": ("ExitStack", ""),
    "functools": ("partial", ""),
    "inspect": ("BoundArguments Signature", ""),
    "itertools": ("chain", ""),
    "logging": (
        "Filter Handler LogRecord Logger",
        (
            "Handler.get_name Handler.name Handler.set_name Logger.callHandlers "
            "Logger.fatal Logger.manager Logger.root Logger.warn"
        ),
    ),
    "multiprocessing": ("Process", ""),
    "pathlib": ("Path PurePath", ""),
    "queue": ("Queue SimpleQueue", ""),
    "subprocess": ("Popen", "Popen.universal_newlines"),
    "threading": (
        "Barrier Condition Event Semaphore Thread Timer",
        "Condition.notifyAll Event.isSet Timer.run",
    ),
    "weakref": ("finalize", ""),
}

LIBRARY = "library/{module}.html#{module}.{name}"
FUNCTIONS = "library/functions.html#{name}"
TYPES = "library/stdtypes.html#{name}"

PYTHON = Project(
    base="https://docs.python.org/3/",
    distribution=None,
    pages=(
        Pages(
            "builtins",
            FUNCTIONS,
            only="function",
            without="copyright credits exit license quit",
        ),
        Pages(
            "builtins",
            FUNCTIONS,
            names="bool classmethod complex enumerate filter float int map object "
            "open property reversed slice staticmethod super type zip",
        ),
        Pages(
            "builtins",
            TYPES,
            names="bytearray bytes dict frozenset list memoryview range set str tuple",
        ),
        Pages(
            "builtins",
            TYPES,
            names="bytes dict frozenset memoryview str",
            members=OWN,
            every_member=True,
        ),
        Pages("builtins", "library/exceptions.html#{name}", only="exception"),
        Pages(
            "builtins",
            "library/constants.html#{name}",
            names="Ellipsis False None NotImplemented True",
        ),
        *(
            Pages(module, LIBRARY, without=without)
            for module, without in PYTHON_MODULES.items()
        ),
        *(
            Pages(
                module,
                LIBRARY,
                names=names,
                without=without,
                members=OWN,
                every_member=True,
            )
            for module, (names, without) in PYTHON_MEMBERS.items()
        ),
        Pages(
            "logging",
            "library/logging.handlers.html#logging.{name}",
            names="FileHandler NullHandler StreamHandler",
        ),
        # Public, but not listed in the module.
        Pages("os", LIBRARY, names="PathLike"),
    ),
    modules={m: f"library/{m}.html#module-{m}" for m in PYTHON_MODULES},
)


# --- PyTorch ------------------------------------------------------------------

GENERATED = "generated/{module}.{name}.html#{module}.{name}"

# Documented attributes and methods of a tensor that have no page of their own.
TENSOR_WITHOUT = """
    Tensor.H Tensor.T Tensor.as_strided_ Tensor.as_strided_scatter Tensor.coalesce
    Tensor.col_indices Tensor.crow_indices Tensor.deg2rad_ Tensor.exp2 Tensor.exp2_
    Tensor.grad_dtype Tensor.heaviside_ Tensor.index Tensor.ipu Tensor.is_coalesced
    Tensor.is_cpu Tensor.is_ipu Tensor.is_mps Tensor.is_neg Tensor.is_sparse_csr
    Tensor.is_xla Tensor.is_xpu Tensor.kron Tensor.mH Tensor.mT Tensor.mtia
    Tensor.new_empty_strided Tensor.put Tensor.rad2deg_ Tensor.sparse_resize_*
    Tensor.swapaxes_ Tensor.swapdims_ Tensor.to_padded_tensor Tensor.to_sparse_coo
    Tensor.unsafe_*
"""

TORCH = Project(
    base="https://docs.pytorch.org/docs/stable/",
    distribution="torch",
    pages=(
        # In-place twins and copies of views share the page of the plain function.
        Pages(
            "torch",
            GENERATED,
            only="function",
            documented=True,
            without=(
                "*_ *_copy adaptive_avg_pool1d as_strided_scatter avg_pool1d bilinear "
                "channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose*d "
                "cosine_similarity empty_permuted fork hardshrink hash_tensor hspmm "
                "import_ir_module* init_num_threads is_inference "
                "merge_type_from_type_comment native_channel_shuffle nonzero_static "
                "pairwise_distance parse_* pdist pixel_shuffle pixel_unshuffle prelu "
                "quantize_per_tensor_dynamic smm sparse_compressed_tensor "
                "split_with_sizes sspaddmm thread_safe_generator typename "
                "unify_type_list unsafe_* wait"
            ),
        ),
        # Not listed among the public names, classes that are used like functions,
        # or no copies although their names look so.
        Pages(
            "torch",
            GENERATED,
            names="broadcast_shapes cholesky compiled_with_cxx11_abi enable_grad "
            "from_dlpack index_copy lu narrow_copy no_grad pca_lowrank qr "
            "set_default_dtype svd_lowrank unique",
        ),
        Pages("torch", GENERATED, names="Event Generator Stream", members=INHERITED),
        Pages(
            "torch",
            "tensor_attributes.html#torch.{name}",
            names="device dtype layout memory_format",
        ),
        Pages("torch", "size.html#torch.{name}", names="Size"),
        Pages(
            "torch",
            "generated/{home}.{name}.html#{home}.{name}",
            names="inference_mode set_grad_enabled",
        ),
        Pages(
            "torch",
            "tensors.html#torch.{name}",
            names="Tensor",
            members=INHERITED,
            member_page="generated/torch.Tensor.{member}.html#torch.Tensor.{member}",
            without=TENSOR_WITHOUT,
        ),
        Pages(
            "torch",
            "tensors.html#torch.{name}",
            names="Tensor.H Tensor.T Tensor.mH Tensor.mT",
        ),
        Pages(
            "torch", GENERATED, names="Tensor.cholesky Tensor.index_reduce Tensor.qr"
        ),
        Pages(
            "torch.nn",
            GENERATED,
            only="class",
            without="Buffer Container CrossMapLRN2d Flatten NLLLoss2d Parameter "
            "RNNCellBase Unflatten UninitializedBuffer UninitializedParameter",
        ),
        Pages("torch.nn", GENERATED, names="Module", members=OWN),
        Pages("torch.nn.parameter", GENERATED, names="Buffer Parameter"),
        Pages("torch.nn.modules.flatten", GENERATED, names="Flatten Unflatten"),
        Pages("torch.nn.utils", GENERATED, names="clip_grad_norm_ clip_grad_value_"),
        Pages(
            "torch.nn.utils.rnn",
            GENERATED,
            names="PackedSequence pack_padded_sequence pack_sequence "
            "pad_packed_sequence pad_sequence unpack_sequence unpad_sequence",
        ),
        Pages(
            "torch.nn.functional",
            GENERATED,
            only="function",
            documented=True,
            without="*_with_indices boolean_dispatch celu_ channel_shuffle conv_tbc "
            "handle_torch_function has_torch_function* multi_head_attention_forward "
            "native_channel_shuffle selu_",
        ),
        Pages(
            "torch.nested",
            "nested.html#torch.nested.{name}",
            names="as_nested_tensor masked_select narrow nested_tensor "
            "nested_tensor_from_jagged to_padded_tensor",
        ),
        Pages(
            "torch.optim",
            GENERATED,
            names="ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam "
            "RAdam RMSprop Rprop SGD SparseAdam",
        ),
        Pages(
            "torch.optim",
            "optim.html#torch.optim.{name}",
            names="Optimizer",
            members=OWN,
            member_page="generated/torch.optim.Optimizer.{member}.html"
            "#torch.optim.Optimizer.{member}",
            without="Optimizer.profile_hook_step",
        ),
        Pages(
            "torch.optim.lr_scheduler",
            GENERATED,
            names="ChainedScheduler ConstantLR CosineAnnealingLR "
            "CosineAnnealingWarmRestarts CyclicLR ExponentialLR LRScheduler LambdaLR "
            "LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR "
            "ReduceLROnPlateau SequentialLR StepLR",
        ),
        # The page names each distribution by the module that defines it.
        Pages(
            "torch.distributions",
            "distributions.html#{home}.{name}",
            names="Distribution ExponentialFamily",
            members=OWN,
        ),
        Pages(
            "torch.distributions",
            "distributions.html#{home}.{name}",
            names="Bernoulli Beta Binomial Categorical Cauchy Chi2 "
            "ContinuousBernoulli Dirichlet Exponential Gamma Geometric Gumbel "
            "HalfCauchy HalfNormal Independent Laplace LogNormal MixtureSameFamily "
            "Multinomial MultivariateNormal NegativeBinomial Normal "
            "OneHotCategorical Pareto Poisson RelaxedBernoulli "
            "RelaxedOneHotCategorical StudentT TransformedDistribution Uniform "
            "VonMises Weibull",
            members=OWN,
            every_member=True,
            without="*.deterministic_sample",  # added by tensordict on import
        ),
        Pages(
            "torch.distributions",
            "distributions.html#{home}.{name}",
            names="kl_divergence register_kl",
        ),
        Pages(
            "torch.utils.data",
            "data.html#torch.utils.data.{name}",
            names="BatchSampler ChainDataset ConcatDataset DataLoader Dataset "
            "IterableDataset RandomSampler Sampler SequentialSampler StackDataset "
            "Subset SubsetRandomSampler TensorDataset WeightedRandomSampler "
            "default_collate default_convert get_worker_info random_split",
        ),
    ),
    modules={
        "torch": "torch.html#module-torch",
        "torch.distributions": "distributions.html#module-torch.distributions",
        "torch.multiprocessing": "multiprocessing.html#module-torch.multiprocessing",
        "torch.nested": "nested.html#module-torch.nested",
        "torch.nn": "nn.html#module-torch.nn",
        "torch.nn.functional": "nn.html#module-torch.nn.functional",
        "torch.optim": "optim.html#module-torch.optim",
        "torch.optim.lr_scheduler": "optim.html#module-torch.optim.lr_scheduler",
        "torch.utils.data": "data.html#module-torch.utils.data",
    },
    aliases=("torch.nn",),
)


# --- TensorDict ---------------------------------------------------------------

REFERENCE = "reference/generated/{module}.{name}.html#{module}.{name}"

# The methods that all tensordicts share are described once, for the base class,
# each on a page of its own.
TENSORDICT_MEMBER = (
    "reference/generated/tensordict.TensorDictBase.{member}.html"
    "#tensordict.TensorDictBase.{member}"
)

TENSORDICT = Project(
    base="https://docs.pytorch.org/tensordict/stable/",
    distribution="tensordict",
    pages=(
        Pages(
            "tensordict",
            REFERENCE,
            names="TensorDict TensorDictBase",
            members=INHERITED,
            member_page=TENSORDICT_MEMBER,
        ),
        Pages(
            "tensordict",
            REFERENCE,
            names="LazyStackedTensorDict MemoryMappedTensor MetaData NonTensorData "
            "NonTensorStack PersistentTensorDict TensorClass TensorDictParams "
            "UnbatchedTensor capture_non_tensor_stack cat default_is_leaf "
            "dense_stack_tds from_any from_consolidated from_dataclass from_dict "
            "from_h5 from_module from_modules from_namedtuple from_pytree "
            "from_struct_array from_tuple fromkeys get_defaults_to_none "
            "is_batchedtensor is_leaf_nontensor is_tensor_collection lazy_legacy "
            "lazy_stack list_to_stack load load_memmap make_tensordict "
            "maybe_dense_stack memmap merge_tensordicts pad pad_sequence "
            "parse_tensor_dict_string save set_capture_non_tensor_stack "
            "set_lazy_legacy set_list_to_stack stack tensorclass",
        ),
        Pages(
            "tensordict.nn",
            REFERENCE,
            names="ProbabilisticTensorDictModule ProbabilisticTensorDictSequential "
            "TensorDictModule TensorDictModuleWrapper TensorDictSequential",
        ),
    ),
    aliases=("tensordict.nn",),
)


# --- TorchRL ------------------------------------------------------------------

TORCHRL = Project(
    base="https://docs.pytorch.org/rl/stable/",
    distribution="torchrl",
    pages=(
        Pages(
            "torchrl.collectors",
            REFERENCE,
            names="AsyncBatchedCollector AsyncCollector BaseCollector Collector "
            "Evaluator MultiAsyncCollector MultiCollector MultiProcessedWeightUpdater "
            "MultiSyncCollector RayWeightUpdater VanillaWeightUpdater "
            "WeightUpdaterBase",
            members=INHERITED,
        ),
        Pages(
            "torchrl.collectors.distributed",
            REFERENCE,
            names="DistributedCollector DistributedSyncCollector "
            "DistributedWeightUpdater RPCCollector RPCWeightUpdater RayCollector "
            "RayEvalWorker submitit_delayed_launcher",
            members=INHERITED,
        ),
        Pages("torchrl.collectors.utils", REFERENCE, names="split_trajectories"),
        Pages(
            "torchrl.weight_update",
            REFERENCE,
            names="DistributedWeightSyncScheme MultiProcessWeightSyncScheme "
            "NoWeightSyncScheme RPCWeightSyncScheme RayWeightSyncScheme "
            "SharedMemWeightSyncScheme WeightStrategy WeightSyncScheme",
            members=INHERITED,
        ),
        Pages(
            "torchrl.data",
            REFERENCE,
            names="Binary Bounded Categorical Composite Flat2TED MultiCategorical "
            "MultiOneHot NonTensor OneHot PrioritizedReplayBuffer RayReplayBuffer "
            "RemoteTensorDictReplayBuffer ReplayBuffer ReplayBufferEnsemble TED2Flat "
            "TensorDictPrioritizedReplayBuffer TensorDictReplayBuffer TensorSpec "
            "Trajectory TrajectoryPredicate Unbounded UnboundedContinuous "
            "UnboundedDiscrete",
            members=INHERITED,
        ),
        Pages(
            "torchrl.data",
            REFERENCE,
            names="filter_trajectories iter_trajectories prefill_replay_buffer",
        ),
        Pages(
            "torchrl.data.replay_buffers",
            REFERENCE,
            names="CompressedListStorage ImmutableDatasetWriter LazyMemmapStorage "
            "LazyStackStorage LazyTensorStorage ListStorage PrioritizedSampler "
            "PrioritizedSliceSampler RandomSampler RoundRobinWriter Sampler "
            "SamplerEnsemble SamplerWithoutReplacement SliceSampler "
            "SliceSamplerWithoutReplacement StalenessAwareSampler Storage "
            "StorageEnsemble TensorDictMaxValueWriter TensorDictRoundRobinWriter "
            "TensorStorage Writer WriterEnsemble",
            members=INHERITED,
        ),
        Pages(
            "torchrl.envs",
            REFERENCE,
            names="AsyncEnvPool EnvBase EnvCreator EnvMetaData GymLikeEnv ParallelEnv "
            "PendulumEnv ProcessorAsyncEnvPool SerialEnv ThreadingAsyncEnvPool "
            "TicTacToeEnv",
            members=INHERITED,
        ),
        # Environment wrappers are described like functions: without methods.
        Pages(
            "torchrl.envs",
            REFERENCE,
            names="BraxEnv BraxWrapper DMControlEnv DMControlWrapper GymEnv GymWrapper "
            "JumanjiEnv JumanjiWrapper ModelBasedEnvBase MultiThreadedEnv "
            "MultiThreadedEnvWrapper OpenSpielEnv OpenSpielWrapper PettingZooEnv "
            "PettingZooWrapper VmasEnv VmasWrapper check_env_specs exploration_type "
            "get_available_libraries gym_backend make_composite_from_td "
            "register_gym_spec_conversion set_exploration_type set_gym_backend "
            "step_mdp terminated_or_truncated",
        ),
        Pages(
            "torchrl.envs.transforms",
            REFERENCE,
            names="ActionDiscretizer ActionMask ActionScaling AutoResetEnv "
            "AutoResetTransform BatchSizeTransform BinarizeReward BurnInTransform "
            "CatFrames CatTensors CenterCrop ClipTransform Compose "
            "ConditionalPolicySwitch ConditionalSkip Crop DTypeCastTransform "
            "DeviceCastTransform DiscreteActionProjection DoubleToFloat "
            "EndOfLifeTransform ExcludeTransform ExpandAs FiniteTensorDictCheck "
            "FlattenAction FlattenObservation FrameSkipTransform GrayScale Hash "
            "InitTracker LineariseRewards ModuleTransform MultiAction NoopResetEnv "
            "ObservationNorm ObservationTransform PermuteTransform PinMemoryTransform "
            "RandomCropTensorDict RandomTruncationTransform RemoveEmptySpecs "
            "RenameTransform Resize Reward2GoTransform RewardClipping RewardScaling "
            "RewardSum SelectTransform SignTransform SqueezeTransform Stack "
            "StepCounter TargetReturn TensorDictPrimer TimeMaxPool Timer Tokenizer "
            "ToTensorImage TrajCounter Transform TransformedEnv UnaryTransform "
            "UnsqueezeTransform VecGymEnvTransform VecNorm VecNormV2 gSDENoise",
            members=OWN,
        ),
        Pages(
            "torchrl.modules.tensordict_module",
            REFERENCE,
            names="Actor MultiStepActorWrapper ProbabilisticActor RandomPolicy "
            "SafeModule SafeProbabilisticModule SafeProbabilisticTensorDictSequential "
            "SafeSequential TanhModule",
            members=OWN,
        ),
        Pages(
            "torchrl.modules",
            REFERENCE,
            names="ActorCriticOperator ActorCriticWrapper ActorValueOperator "
            "AdditiveGaussianModule ConsistentDropoutModule ConvNet DdpgCnnActor "
            "DdpgCnnQNet DdpgMlpActor DdpgMlpQNet DecisionTransformer Delta "
            "DistributionalQValueActor DistributionalQValueModule DuelingCnnDQNet "
            "EGreedyModule GRUModule IndependentNormal LSTMModule MLP "
            "MaskedCategorical NormalParamExtractor OneHotCategorical "
            "OrnsteinUhlenbeckProcessModule QValueActor QValueModule "
            "ReparamGradientStrategy TanhDelta TanhNormal TruncatedNormal "
            "ValueOperator canonicalize_rnn_subset "
            "set_exploration_modules_spec_from_env set_recurrent_mode",
            members=OWN,
        ),
        Pages(
            "torchrl.objectives",
            REFERENCE,
            names="A2CLoss ClipPPOLoss KLPENPPOLoss LossModule PPOLoss ReinforceLoss "
            "ValueEstimators",
            members=OWN,
        ),
        Pages(
            "torchrl.objectives.value",
            REFERENCE,
            names="GAE MultiAgentGAE TD0Estimator TD1Estimator TDLambdaEstimator "
            "ValueEstimatorBase",
            members=OWN,
        ),
    ),
    # These pages carry no anchor for their module.
    modules={
        "torchrl.collectors": "reference/collectors.html",
        "torchrl.data": "reference/data.html",
        "torchrl.envs": "reference/envs.html",
        "torchrl.modules": "reference/modules.html",
        "torchrl.objectives": "reference/objectives.html",
    },
    aliases=(
        "torchrl.collectors",
        "torchrl.data",
        "torchrl.data.replay_buffers",
        "torchrl.envs",
        "torchrl.envs.utils",
        "torchrl.modules",
    ),
)


# --- Gymnasium ----------------------------------------------------------------

GYMNASIUM = Project(
    base="https://gymnasium.farama.org/",
    distribution="gymnasium",
    pages=(
        Pages(
            "gymnasium",
            "api/env/#gymnasium.{name}",
            names="Env Env.action_space Env.close Env.metadata Env.np_random "
            "Env.np_random_seed Env.observation_space Env.render Env.render_mode "
            "Env.reset Env.spec Env.step Env.unwrapped",
        ),
        Pages(
            "gymnasium",
            "api/registry/#gymnasium.{name}",
            names="make make_vec pprint_registry register spec",
        ),
        Pages(
            "gymnasium.envs.registration",
            "api/registry/#gymnasium.envs.registration.{name}",
            names="EnvSpec WrapperSpec find_highest_version get_env_id "
            "load_env_creator namespace parse_env_id registry",
        ),
        Pages(
            "gymnasium.spaces",
            "api/spaces/#gymnasium.spaces.{name}",
            names="Space Space.contains Space.dtype Space.from_jsonable "
            "Space.is_np_flattenable Space.np_random Space.sample Space.seed "
            "Space.shape Space.to_jsonable",
        ),
        Pages(
            "gymnasium.spaces",
            "api/spaces/fundamental/#gymnasium.spaces.{name}",
            names="Box Box.is_bounded Box.sample Box.seed Discrete Discrete.sample "
            "Discrete.seed MultiBinary MultiBinary.sample MultiBinary.seed "
            "MultiDiscrete MultiDiscrete.sample MultiDiscrete.seed Text Text.sample "
            "Text.seed",
        ),
        Pages(
            "gymnasium.spaces",
            "api/spaces/composite/#gymnasium.spaces.{name}",
            names="Dict Dict.sample Dict.seed Graph Graph.sample Graph.seed OneOf "
            "OneOf.sample OneOf.seed Sequence Sequence.sample Sequence.seed Tuple "
            "Tuple.sample Tuple.seed",
        ),
        Pages(
            "gymnasium",
            "api/wrappers/#gymnasium.{name}",
            names="Wrapper Wrapper.action_space Wrapper.close Wrapper.env "
            "Wrapper.get_wrapper_attr Wrapper.metadata Wrapper.np_random "
            "Wrapper.np_random_seed Wrapper.observation_space Wrapper.render "
            "Wrapper.reset Wrapper.set_wrapper_attr Wrapper.spec Wrapper.step "
            "Wrapper.unwrapped Wrapper.wrapper_spec",
        ),
        Pages(
            "gymnasium.wrappers",
            "api/wrappers/misc_wrappers/#gymnasium.wrappers.{name}",
            names="AtariPreprocessing Autoreset HumanRendering OrderEnforcing "
            "PassiveEnvChecker RecordEpisodeStatistics RecordVideo RenderCollection "
            "TimeLimit",
        ),
        Pages(
            "gymnasium",
            "api/wrappers/action_wrappers/#gymnasium.{name}",
            names="ActionWrapper ActionWrapper.action",
        ),
        Pages(
            "gymnasium.wrappers",
            "api/wrappers/action_wrappers/#gymnasium.wrappers.{name}",
            names="ClipAction RescaleAction StickyAction TransformAction",
        ),
        Pages(
            "gymnasium",
            "api/wrappers/observation_wrappers/#gymnasium.{name}",
            names="ObservationWrapper ObservationWrapper.observation",
        ),
        Pages(
            "gymnasium.wrappers",
            "api/wrappers/observation_wrappers/#gymnasium.wrappers.{name}",
            names="AddRenderObservation DelayObservation DtypeObservation "
            "FilterObservation FlattenObservation FrameStackObservation "
            "GrayscaleObservation MaxAndSkipObservation NormalizeObservation "
            "RescaleObservation ReshapeObservation ResizeObservation "
            "TimeAwareObservation TransformObservation",
        ),
        Pages(
            "gymnasium",
            "api/wrappers/reward_wrappers/#gymnasium.{name}",
            names="RewardWrapper RewardWrapper.reward",
        ),
        Pages(
            "gymnasium.wrappers",
            "api/wrappers/reward_wrappers/#gymnasium.wrappers.{name}",
            names="ClipReward NormalizeReward TransformReward",
        ),
        Pages(
            "gymnasium.vector",
            "api/vector/#gymnasium.vector.{name}",
            names="VectorEnv VectorEnv.close VectorEnv.metadata VectorEnv.np_random "
            "VectorEnv.num_envs VectorEnv.render VectorEnv.reset VectorEnv.spec "
            "VectorEnv.step VectorEnv.unwrapped",
        ),
        Pages(
            "gymnasium.vector",
            "api/vector/async_vector_env/#gymnasium.vector.{name}",
            names="AsyncVectorEnv AsyncVectorEnv.call AsyncVectorEnv.close "
            "AsyncVectorEnv.get_attr AsyncVectorEnv.reset AsyncVectorEnv.set_attr "
            "AsyncVectorEnv.step",
        ),
        Pages(
            "gymnasium.vector",
            "api/vector/sync_vector_env/#gymnasium.vector.{name}",
            names="SyncVectorEnv SyncVectorEnv.call SyncVectorEnv.close "
            "SyncVectorEnv.get_attr SyncVectorEnv.reset SyncVectorEnv.set_attr "
            "SyncVectorEnv.step",
        ),
        Pages(
            "gymnasium.utils.env_checker",
            "api/utils/#gymnasium.utils.env_checker.{name}",
            names="check_env",
        ),
    ),
    modules={
        "gymnasium.spaces": "api/spaces/#module-gymnasium.spaces",
        "gymnasium.wrappers": "api/wrappers/#module-gymnasium.wrappers",
    },
    aliases=("gymnasium", "gymnasium.spaces"),
)

PROJECTS = {
    "python": PYTHON,
    "torch": TORCH,
    "tensordict": TENSORDICT,
    "torchrl": TORCHRL,
    "gymnasium": GYMNASIUM,
}


# --- Reading the packages -----------------------------------------------------

Entries = dict[tuple[str, str], str]  # (full name, role) -> address in the project


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module: its ``__all__``, or what it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(set(listed))
    package = module.__name__.partition(".")[0]
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not inspect.ismodule(value)
        and not is_foreign(value, package)
    )


def is_foreign(value: Any, package: str) -> bool:
    """Tell whether a class or function comes from another package."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return False
    home = getattr(value, "__module__", None) or package
    # The part of ``signal`` that is written in C calls itself ``_signal``.
    return home.partition(".")[0].lstrip("_") != package


def roles_of(name: str, value: Any) -> list[str]:
    """Return the roles under which a module's name is entered, the main one first.

    A class that is written like a function (``catch_warnings``) is cited as either,
    and so is a function that is written like a class (``multiprocessing.Queue``).
    """
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return ["exception"]
        return ["class", "function"] if name[0].islower() else ["class"]
    if inspect.isroutine(value) or (callable(value) and name[0].islower()):
        return ["function", "class"] if name[0].isupper() else ["function"]
    return ["data", "class"] if callable(value) else ["data"]


def member_role(member: Any) -> str | None:
    """Return the role of a class member as it stands in the class's ``__dict__``."""
    if inspect.isclass(member):
        return None
    if isinstance(member, (classmethod, staticmethod)) or inspect.isroutine(member):
        return "method"
    return "attribute"


def members_of(cls: type, pages: Pages) -> Iterator[tuple[str, str]]:
    """Yield name and role of the members that the page of a class describes."""
    package = cls.__module__.partition(".")[0]
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if name.startswith("_") or owner is None:
            continue
        if pages.members == OWN and owner is not cls:
            continue
        if owner.__module__.partition(".")[0] != package:
            continue
        member = vars(owner)[name]
        role = member_role(member)
        if role and (pages.every_member or is_described(member, role)):
            yield name, role


def is_described(member: Any, role: str) -> bool:
    """Tell whether a member has a docstring, as generated pages require.

    A plain value shows the docstring of its type, which does not count.
    """
    if role == "attribute" and not hasattr(type(member), "__get__"):
        return False
    return bool(inspect.getdoc(getattr(member, "__func__", member)))


def find(module: ModuleType, dotted: str) -> tuple[Any, str | None]:
    """Return what a name stands for, and its role if it is a member of a class."""
    owner_name, _, member_name = dotted.rpartition(".")
    if not owner_name:
        return getattr(module, dotted), None
    owner = getattr(module, owner_name)
    # Some attributes are only annotated in the class, and set on its instances.
    if any(
        member_name in vars(base).get("__annotations__", ()) for base in owner.__mro__
    ):
        return None, "attribute"
    member = inspect.getattr_static(owner, member_name)
    return member, member_role(member)


def is_left_out(name: str, pages: Pages) -> bool:
    """Tell whether a name is among those without a page."""
    return any(fnmatchcase(name, pattern) for pattern in pages.without.split())


def add_pages(entries: Entries, described: dict[int, str], pages: Pages) -> None:
    """Enter the names of one row, and note which object each of them stands for."""
    module = importlib.import_module(pages.module)
    # Built-in names are cited without their module.
    prefix = "" if pages.module == "builtins" else f"{pages.module}."
    names = public_names(module) if pages.names is None else pages.names.split()
    for name in names:
        value, role = find(module, name)
        roles = [role] if role else roles_of(name, value)
        if is_left_out(name, pages) or (pages.only and roles[0] != pages.only):
            continue
        if pages.documented and not inspect.getdoc(value):
            continue
        full_name = prefix + name
        place = {
            "module": pages.module,
            "name": name,
            "home": getattr(value, "__module__", None),
        }
        address = pages.page.format(**place)
        for role in roles:
            entries[full_name, role] = address
        if inspect.isclass(value) or inspect.isroutine(value):
            described.setdefault(id(value), full_name)
        if pages.members and inspect.isclass(value):
            member_page = pages.member_page or address + ".{member}"
            for member, role in members_of(value, pages):
                if not is_left_out(f"{name}.{member}", pages):
                    entries[f"{full_name}.{member}", role] = member_page.format(
                        member=member, **place
                    )


def add_aliases(entries: Entries, described: dict[int, str], module_name: str) -> None:
    """Enter the names under which a module exports objects described elsewhere."""
    module = importlib.import_module(module_name)
    for name in public_names(module):
        full_name = f"{module_name}.{name}"
        original = described.get(id(getattr(module, name)))
        if original in (None, full_name):
            continue
        for (entry, role), address in list(entries.items()):
            if entry == original or entry.startswith(f"{original}."):
                entries[full_name + entry.removeprefix(original), role] = address


def entries_of(project: Project) -> Entries:
    """Return all entries of a project."""
    entries: Entries = {}
    described: dict[int, str] = {}
    for pages in project.pages:
        add_pages(entries, described, pages)
    for module_name in project.aliases:
        add_aliases(entries, described, module_name)
    for module_name, page in project.modules.items():
        entries[module_name, "module"] = page
    return entries


# --- Writing the inventories --------------------------------------------------


def version_of(project: Project) -> str:
    """Return the installed version, without the name of a build."""
    if project.distribution is None:
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    return importlib.metadata.version(project.distribution).partition("+")[0]


def inventory_text(name: str) -> bytes:
    """Return the inventory of a project as text, in a fixed order."""
    project = PROJECTS[name]
    inventory = sphobjinv.Inventory()
    inventory.project = name
    inventory.version = version_of(project)
    for (entry, role), address in sorted(entries_of(project).items()):
        inventory.objects.append(
            sphobjinv.DataObjStr(
                name=entry,
                domain="py",
                role=role,
                priority="1",
                uri=address,
                dispname="-",
            )
        )
    return inventory.data_file(contract=True)


def committed_text(path: Path) -> bytes | None:
    """Return the text of an inventory file, or None if it holds no inventory."""
    try:
        return sphobjinv.decompress(path.read_bytes())
    except (OSError, zlib.error, sphobjinv.SphobjinvError):
        return None


def main(arguments: list[str] | None = None) -> int:
    """Write the inventories, or compare them; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit with 1 if an inventory is not up to date",
    )
    check = parser.parse_args(arguments).check
    status = 0
    for name in PROJECTS:
        path = HERE / f"{name}.inv"
        text = inventory_text(name)
        if not check:
            path.write_bytes(sphobjinv.compress(text))
        # The text is compared: another zlib may pack the same text differently.
        elif committed_text(path) != text:
            print(f"{path.name} is not what the installed packages give")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
