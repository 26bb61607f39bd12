#include "kernels/cuda/library/cudnn_graph.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/cuda/library/cudnn_device.h"
#include "kernels/cuda/library/workspace.h"

namespace mpc::cuda {
namespace {

namespace fe = cudnn_frontend;
using Config = fe::ManagedOpaqueDescriptor;
using Knobs = std::vector<std::pair<cudnnBackendKnobType_t, std::int64_t>>;

/// cuDNN's reasons run over many lines, one an engine; the first says what failed.
std::string FirstLine(fe::error_t error) {
  const std::string message = error.get_message();
  return message.substr(0, message.find('\n'));
}

absl::Status Unimplemented(absl::string_view what, const fe::error_t& error) {
  return absl::UnimplementedError(absl::StrCat("cuDNN: ", what, ": ", FirstLine(error)));
}

/// The frontend's graph with access to what it lowered. Engines are chosen here and not by the frontend. The frontend
/// does not tell the workspace of an engine that is not built, and takes no engine by its name.
class Graph : public fe::graph::Graph {
 public:
  fe::error_t Lower(cudnnHandle_t handle) {
    fe::error_t error = validate();
    if (error.is_good()) error = handle == nullptr ? build_operation_graph() : build_operation_graph(handle);
    if (error.is_good()) error = prepare_variant_pack_template();
    return error;
  }

  /// True if the tensors in memory are 1, 2, ...
  bool HasTensorsInOrder() const {
    const std::vector<std::int64_t> ids = get_variant_pack_uids_sorted();
    return !ids.empty() && ids.front() == 1 && ids.back() == static_cast<std::int64_t>(ids.size());
  }

  fe::error_t Heuristics(fe::EngineConfigList& configs) const {
    return fe::detail::query_cudnn_heuristics_impl(
        operation_graph, configs, {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}, -1, device_properties);
  }

  fe::error_t MakeConfig(std::int64_t engine_id, const Knobs& knobs, Config& config) const {
    fe::detail::backend_descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    fe::error_t error =
        fe::detail::create_engine(engine, engine_id, operation_graph->get_raw_desc(), device_properties);
    if (error.is_bad()) return error;
    std::vector<fe::detail::backend_descriptor> choices;
    for (const auto& [type, value] : knobs) {
      // The frontend's own function knows the newer half of the knobs only.
      fe::detail::backend_descriptor choice(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
      const cudnnBackendDescriptor_t raw = choice.get_ptr();
      if (fe::detail::set_attribute(raw, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type) !=
              CUDNN_STATUS_SUCCESS ||
          fe::detail::set_attribute(raw, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value) !=
              CUDNN_STATUS_SUCCESS ||
          fe::detail::finalize(raw) != CUDNN_STATUS_SUCCESS) {
        return {fe::error_code_t::INVALID_VALUE, absl::StrCat("there is no knob ", static_cast<int>(type), "=", value)};
      }
      choices.push_back(std::move(choice));
    }
    config = fe::make_shared_backend_pointer(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    return fe::detail::create_engine_config(config, engine, choices);
  }

  /// Finalises the plan of `config`, which compiles it where the engine is compiled at run time.
  fe::error_t BuildPlan(const Config& config) {
    plans = fe::graph::Execution_plan_list();
    plans.set_tag(operation_graph->getTag());
    plans.enqueue_engine_configs({config});
    if (fe::error_t error = plans.query_properties(); error.is_bad()) return error;
    return build_plan_at_index(0);
  }

  std::int64_t BuiltWorkspace() const { return plans.execution_plans[0]->getWorkspaceSize(); }
  /// The bytes that the frontend itself adds in front of the engine's workspace.
  std::int64_t OwnWorkspace() const { return get_fe_workspace_size_subtree(); }
};

/// A list of notes of the engine of `config`; nothing if it cannot be read.
template <typename Note>
std::optional<std::vector<Note>> EngineNotes(const Config& config, cudnnBackendAttributeName_t attribute,
                                             cudnnBackendAttributeType_t type, std::int64_t most) {
  Config engine = fe::make_shared_backend_pointer(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine->get_backend_descriptor();
  std::int64_t count = 0;
  std::vector<Note> notes(static_cast<std::size_t>(most));
  if (fe::detail::get_attribute(config->get_backend_descriptor(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw) != CUDNN_STATUS_SUCCESS ||
      fe::detail::get_attribute(raw, attribute, type, most, &count, notes.data()) != CUDNN_STATUS_SUCCESS) {
    return std::nullopt;
  }
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

std::vector<cudnnBackendNumericalNote_t> NotesOf(const Config& config) {
  // An engine that does not say what it does is taken for one that does the worst.
  return EngineNotes<cudnnBackendNumericalNote_t>(config, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT)
      .value_or(std::vector{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC});
}

/// Such an engine cannot be built without the device that it is compiled on.
bool IsCompiledAtRunTime(const Config& config) {
  const auto notes = EngineNotes<cudnnBackendBehaviorNote_t>(config, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                             CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return !notes.has_value() ||
         std::find(notes->begin(), notes->end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes->end();
}

std::string NoteName(cudnnBackendNumericalNote_t note) {
  return std::string(absl::StripPrefix(fe::to_string(note), "CUDNN_NUMERICAL_NOTE_"));
}

/// Whether the numerics contract excludes an engine. The contract asks for sums in f32 and equal bits in every run. In
/// f32 it forbids tensor cores, which would round operands to TF32, unless the context allows them.
bool IsExcluded(cudnnBackendNumericalNote_t note, bool allow_tensor_cores) {
  switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      return !allow_tensor_cores;
    case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
      return false;
    default:
      return true;  // DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, FFT, NONDETERMINISTIC, WINOGRAD*, later ones
  }
}

struct EngineName {
  std::int64_t engine = 0;
  Knobs knobs;
};

template <typename Integer>
bool Parse(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// "eng51_k2=1_k13=0".
std::optional<EngineName> ParseEngineName(std::string_view text) {
  EngineName name;
  if (!text.starts_with("eng")) return std::nullopt;
  text.remove_prefix(3);
  std::size_t end = text.find('_');
  if (!Parse(text.substr(0, end), name.engine)) return std::nullopt;
  while (end != std::string_view::npos) {
    text.remove_prefix(end + 1);
    end = text.find('_');
    const std::string_view knob = text.substr(0, end);
    const std::size_t equals = knob.find('=');
    int type = 0;
    std::int64_t value = 0;
    if (!knob.starts_with('k') || equals == std::string_view::npos || !Parse(knob.substr(1, equals - 1), type) ||
        !Parse(knob.substr(equals + 1), value)) {
      return std::nullopt;
    }
    name.knobs.emplace_back(static_cast<cudnnBackendKnobType_t>(type), value);
  }
  return name;
}

}  // namespace

fe::DataType_t CudnnType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return fe::DataType_t::HALF;
    case DType::kBF16:
      return fe::DataType_t::BFLOAT16;
    default:
      return fe::DataType_t::FLOAT;
  }
}

struct CudnnGraph::State {
  Graph graph;
  cudnnHandle_t handle = nullptr;
  bool allow_tensor_cores = true;
  std::size_t workspace_cap = 0;
  fe::EngineConfigList configs;  ///< the heuristic's configurations, once it was asked

  Config chosen;
  std::string engine;
  std::size_t workspace_bytes = 0;
  bool is_built = false;

  std::optional<cudnnBackendNumericalNote_t> ExcludedNote(const Config& config) const {
    for (cudnnBackendNumericalNote_t note : NotesOf(config)) {
      if (IsExcluded(note, allow_tensor_cores)) return note;
    }
    return std::nullopt;
  }

  /// The workspace of `config`, frontend's part included.
  absl::StatusOr<std::size_t> WorkspaceOf(Config config) const {
    std::int64_t bytes = 0;
    if (fe::error_t error = fe::detail::get_workspace_size(config, bytes); error.is_bad()) {
      return Unimplemented("the workspace of an engine", error);
    }
    return PaddedWorkspace(static_cast<std::size_t>(bytes + graph.OwnWorkspace()));
  }

  bool Offers(const Config& config) const {
    if (ExcludedNote(config).has_value()) return false;
    const absl::StatusOr<std::size_t> bytes = WorkspaceOf(config);
    return bytes.ok() && *bytes <= workspace_cap;
  }

  absl::Status Take(const Config& config) {
    absl::StatusOr<std::size_t> bytes = WorkspaceOf(config);
    if (!bytes.ok()) return bytes.status();
    chosen = config;
    engine = fe::detail::get_engine_tag(config);
    workspace_bytes = *bytes;
    is_built = false;
    return handle != nullptr || !IsCompiledAtRunTime(config) ? Build() : absl::OkStatus();
  }

  absl::Status Build() {
    if (is_built) return absl::OkStatus();
    if (fe::error_t error = graph.BuildPlan(chosen); error.is_bad()) return Unimplemented("building a plan", error);
    is_built = true;
    workspace_bytes = std::max(
        workspace_bytes, PaddedWorkspace(static_cast<std::size_t>(graph.BuiltWorkspace() + graph.OwnWorkspace())));
    return absl::OkStatus();
  }

  /// Asks the heuristic, which takes much longer than building an engine that has a name.
  absl::Status FindConfigs() {
    if (!configs.empty()) return absl::OkStatus();
    fe::error_t error = graph.Heuristics(configs);
    return error.is_bad() ? Unimplemented("the choice of engines", error) : absl::OkStatus();
  }

  absl::Status TakeFirst() {
    if (absl::Status status = FindConfigs(); !status.ok()) return status;
    absl::Status last = absl::UnimplementedError(absl::StrCat("cuDNN: none of ", configs.size(),
                                                              " engines keeps the numerics contract within ",
                                                              workspace_cap, " bytes of workspace"));
    for (const Config& config : configs) {
      if (!Offers(config)) continue;
      absl::Status status = Take(config);
      // A plan that is built may want more than its engine said.
      if (status.ok() && workspace_bytes <= workspace_cap) return status;
      if (!status.ok()) last = std::move(status);
    }
    return last;
  }

  absl::Status TakeNamed(std::string_view name) {
    const auto refuse = [&](absl::string_view why) {
      return absl::FailedPreconditionError(
          absl::StrCat("the chosen cuDNN engine \"", std::string(name), "\" cannot be used here: ", why));
    };
    const std::optional<EngineName> parsed = ParseEngineName(name);
    if (!parsed.has_value()) return refuse("an engine is written \"eng51_k2=1_k13=0\"");
    Config config;
    if (fe::error_t error = graph.MakeConfig(parsed->engine, parsed->knobs, config); error.is_bad()) {
      return refuse(FirstLine(error));
    }
    if (const auto note = ExcludedNote(config); note.has_value()) {
      return refuse(absl::StrCat("it is noted as ", NoteName(*note)));
    }
    if (absl::Status status = Take(config); !status.ok()) return refuse(status.message());
    if (workspace_bytes > workspace_cap) {
      return refuse(absl::StrCat("it needs ", workspace_bytes, " bytes of workspace, allowed are ", workspace_cap));
    }
    engine = std::string(name);
    return absl::OkStatus();
  }
};

CudnnGraph::CudnnGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudnnGraph::~CudnnGraph() = default;

absl::StatusOr<std::unique_ptr<CudnnGraph>> CudnnGraph::Create(const KernelContext& context, DType dtype,
                                                               const Operations& operations) {
  auto state = std::make_unique<State>();
  state->handle = static_cast<cudnnHandle_t>(context.handles.cudnn);
  state->allow_tensor_cores = dtype != DType::kF32 || context.allow_tf32;
  state->workspace_cap = context.workspace_cap;
  Graph& graph = state->graph;
  graph.set_io_data_type(CudnnType(dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(context.target.compute_capability)
      // A recorded step holds its kernels, and with them this graph, for as long as it can be launched.
      .set_cuda_graph_retention(fe::CudaGraphRetention_t::NONE);
  if (state->handle == nullptr) {
    absl::StatusOr<std::shared_ptr<const fe::DeviceProperties>> properties =
        CudnnDeviceProperties(context.target.compute_capability);
    if (!properties.ok()) return properties.status();
    graph.set_device_properties(*std::move(properties));
  }
  try {
    operations(graph);
    if (fe::error_t error = graph.Lower(state->handle); error.is_bad()) return Unimplemented("the graph", error);
    if (!graph.HasTensorsInOrder()) return absl::InternalError("tensors of a cuDNN graph are 1, 2, ... without gaps");
  } catch (const std::exception& error) {
    return absl::UnimplementedError(absl::StrCat("cuDNN: ", error.what()));
  }
  return std::unique_ptr<CudnnGraph>(new CudnnGraph(std::move(state)));
}

absl::StatusOr<std::vector<std::string>> CudnnGraph::Engines(std::size_t limit) {
  if (absl::Status status = state_->FindConfigs(); !status.ok()) return status;
  std::vector<std::string> names;
  for (const Config& config : state_->configs) {
    if (names.size() == limit) break;
    if (!state_->Offers(config)) continue;
    std::string name = fe::detail::get_engine_tag(config);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

absl::Status CudnnGraph::Choose(std::string_view engine) {
  return engine.empty() ? state_->TakeFirst() : state_->TakeNamed(engine);
}

absl::Status CudnnGraph::Build() { return state_->Build(); }

const std::string& CudnnGraph::engine() const { return state_->engine; }
std::size_t CudnnGraph::workspace_bytes() const { return state_->workspace_bytes; }

std::vector<std::string> CudnnGraph::notes() const {
  std::vector<std::string> names;
  for (cudnnBackendNumericalNote_t note : NotesOf(state_->chosen)) names.push_back(NoteName(note));
  return names;
}

absl::Status CudnnGraph::Run(absl::Span<void* const> tensors, void* workspace, LaunchQueue& queue) const {
  if (state_->handle == nullptr) {
    return absl::FailedPreconditionError("a cuDNN plan that was made without a device cannot run");
  }
  if (const cudnnStatus_t status = cudnnSetStream(state_->handle, static_cast<cudaStream_t>(queue.stream()));
      status != CUDNN_STATUS_SUCCESS) {
    return absl::InternalError(absl::StrCat("cudnnSetStream: ", cudnnGetErrorString(status)));
  }
  std::vector<void*> pointers(tensors.begin(), tensors.end());
  fe::error_t error = state_->graph.execute_plan_at_index(
      state_->handle, pointers.data(), static_cast<int>(pointers.size()), AlignedWorkspace(workspace), 0);
  if (error.is_bad()) {
    return absl::InternalError(absl::StrCat("cuDNN engine ", state_->engine, ": ", FirstLine(error)));
  }
  return absl::OkStatus();
}

}  // namespace mpc::cuda
