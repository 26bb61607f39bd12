#include "kernels/cpu/onednn_common.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_layout.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {

const dnnl::engine& OnednnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

bool UsesInstructionsOf(dnnl::cpu_isa level) {
  const auto wanted = static_cast<unsigned>(level);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

bool IsNative(DType dtype) {
  static const bool has_bf16 = UsesInstructionsOf(dnnl::cpu_isa::avx512_core_bf16);
  static const bool has_f16 = LevelOfF16() && UsesInstructionsOf(*LevelOfF16());
  if (dtype == DType::kBF16) return has_bf16;
  if (dtype == DType::kF16) return has_f16;
  return dtype == DType::kF32;
}

dnnl::primitive_attr StrictAttributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

dnnl::memory::data_type OnednnType(DType dtype) {
  if (dtype == DType::kBF16) return dnnl::memory::data_type::bf16;
  return dtype == DType::kF16 && IsNative(dtype) ? dnnl::memory::data_type::f16 : dnnl::memory::data_type::f32;
}

DType StorageOf(dnnl::memory::data_type type) {
  if (type == dnnl::memory::data_type::bf16) return DType::kBF16;
  return type == dnnl::memory::data_type::f16 ? DType::kF16 : DType::kF32;
}

DType TypeOf(const dnnl::memory::desc& layout) { return StorageOf(DataTypeOf(layout)); }

dnnl::memory::data_type ResultType(dnnl::memory::data_type computed, DType storage, Activation activation) {
  const bool commutes = activation == Activation::kNone || activation == Activation::kRelu;
  return commutes && computed == OnednnType(storage) ? computed : dnnl::memory::data_type::f32;
}

dnnl::memory::data_type BiasType(dnnl::memory::data_type computed, DType storage) {
  return storage == StorageOf(computed) ? computed : dnnl::memory::data_type::f32;
}

std::vector<dnnl::memory::data_type> OperandTypes(const std::vector<DType>& operands) {
  const DType first = operands.front();
  const bool are_equal = std::all_of(operands.begin(), operands.end(), [first](DType dtype) { return dtype == first; });
  if (first == DType::kF32 || !are_equal || !IsNative(first)) return {dnnl::memory::data_type::f32};
  return {OnednnType(first), dnnl::memory::data_type::f32};
}

std::string Candidate::choice() const { return absl::StrCat(std::string(DTypeName(StorageOf(type))), " ", way); }

void Attempt::Add(Attempt part) {
  if (!absl::StrContains(implementation, part.implementation))
    absl::StrAppend(&implementation, implementation.empty() ? "" : ", ", part.implementation);
  if (defect.empty()) defect = std::move(part.defect);
  operation.primitives.push_back(std::move(part.staged()));
}

bool IsFast(const Attempt& attempt) {
  return !absl::StrContains(attempt.implementation, "ref") && attempt.defect.empty();
}

namespace {

/// Whether the library computes `activation` for all numbers. With AVX-512 oneDNN 3 computes gelu's form with erf by
/// polynomials: infinity becomes NaN, and the greatest numbers become infinity.
bool LibraryComputes(Activation activation) {
  if (activation == Activation::kGeluTanh) return true;
  if (activation != Activation::kGelu) return false;
  static const bool has_erf = DNNL_VERSION_MAJOR == 2 || !UsesInstructionsOf(dnnl::cpu_isa::avx512_core);
  return has_erf;
}

}  // namespace

Attempt AttemptWithActivation(dnnl::memory::data_type computed, DType storage, Activation activation,
                              const std::function<Attempt(const Epilogue&)>& make) {
  if (LibraryComputes(activation)) {
    Epilogue epilogue{{}, ResultType(computed, storage, Activation::kNone)};
    AppendFunction(epilogue.in_primitive, activation == Activation::kGelu ? dnnl::algorithm::eltwise_gelu_erf
                                                                          : dnnl::algorithm::eltwise_gelu_tanh);
    try {
      Attempt attempt = make(epilogue);
      if (IsFast(attempt)) return attempt;
    } catch (const dnnl::error&) {
      // Some implementations, such as Winograd's algorithm, have no gelu.
    }
  }
  return make({{}, ResultType(computed, storage, activation), activation});
}

std::vector<std::string> FastCandidates(const std::vector<Candidate>& candidates, const MakeAttempt& attempt) {
  const SerialLibrary serial;
  std::vector<std::string> fast;
  std::optional<dnnl::memory::data_type> type;
  for (const Candidate& candidate : candidates) {
    if (type.has_value() && (candidate.type != *type || candidate.last_resort)) continue;
    try {
      if (!IsFast(attempt(candidate))) continue;
    } catch (const dnnl::error&) {
      continue;
    }
    type = candidate.type;
    fast.push_back(candidate.choice());
  }
  return fast;
}

namespace {

/// The places of the weight in an operation: where it is prepared, else in each primitive.
template <typename Operation>
auto WeightsOf(Operation& operation) {
  std::vector<decltype(&operation.primitives.front().inputs.front())> weights;
  for (auto& port : operation.prepared) {
    if (port && port->is_weight) weights.push_back(&*port);
  }
  if (!weights.empty()) return weights;
  for (auto& primitive : operation.primitives) {
    for (auto& port : primitive.inputs) {
      if (port.is_weight) weights.push_back(&port);
    }
  }
  return weights;
}

/// Makes `attempt` take the weight as `layout` has it; false where it wants another layout.
bool TakePacked(const std::string& layout, Attempt& attempt) {
  const std::vector<Port*> weights = WeightsOf(attempt.operation);
  for (Port* port : weights) {
    // Names are not compared: where a dimension has one element, several name the same layout.
    const auto named = NamedLayout(ExtentsOf(port->wanted), DataTypeOf(port->wanted), layout);
    if (!named.ok() || *named != port->wanted) return false;
    port->stored = port->wanted;
    port->storage = TypeOf(port->wanted);
  }
  return !weights.empty();
}

}  // namespace

std::optional<WeightPacking> PackingOf(const Attempt& attempt, const std::string& choice) {
  const std::vector<const Port*> weights = WeightsOf(attempt.operation);
  if (weights.empty()) return std::nullopt;
  const Port& weight = *weights.front();
  const bool is_packed = std::all_of(weights.begin(), weights.end(), [&weight](const Port* port) {
    return port->stored != port->wanted && port->stored == weight.stored && port->wanted == weight.wanted;
  });
  const std::string layout = is_packed ? LayoutName(weight.wanted) : "";
  if (layout.empty()) return std::nullopt;
  const DType type = TypeOf(weight.wanted);
  const auto elements = static_cast<std::int64_t>(weight.wanted.get_size() / ElementSize(type));
  return WeightPacking{{type, {elements}}, layout, choice, ExtentsOf(weight.stored), StridesOf(weight.stored)};
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelOf(absl::StatusOr<Resolved> resolved) {
  if (!resolved.ok()) return resolved.status();
  try {
    return WithChoice(MakePartsKernel(resolved->attempt.operation), std::move(resolved->choice),
                      std::move(resolved->packing));
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN has ", resolved->attempt.implementation,
                                            ", but not the changes of layout around it: ", error.message));
  }
}

absl::StatusOr<Resolved> FirstFastCandidate(const KernelSpec& spec, const std::vector<Candidate>& candidates,
                                            const MakeAttempt& attempt, const std::string& choice) {
  const SerialLibrary serial;
  std::vector<std::string> offered;
  for (const Candidate& candidate : candidates) {
    if (!choice.empty() && candidate.choice() != choice) continue;
    try {
      Attempt result = attempt(candidate);
      const bool is_fast = IsFast(result);
      if (is_fast && spec.weight_layout.empty()) {
        std::optional<WeightPacking> packing = PackingOf(result, candidate.choice());
        return Resolved{std::move(result), candidate.choice(), std::move(packing)};
      }
      if (is_fast && TakePacked(spec.weight_layout, result)) {
        return Resolved{std::move(result), candidate.choice(), std::nullopt};
      }
      offered.push_back(absl::StrCat(result.implementation, result.defect.empty() ? "" : ": ", result.defect,
                                     is_fast ? ", which wants the weight otherwise" : ""));
    } catch (const dnnl::error& error) {
      offered.emplace_back(error.message);
    }
  }
  const auto types = [](const std::vector<TensorSpec>& specs) {
    return absl::StrJoin(specs, ", ",
                         [](std::string* text, const TensorSpec& tensor) { text->append(tensor.ToString()); });
  };
  const std::string operation =
      absl::StrCat("mpc.", spec.name, " (", types(spec.inputs), ") -> (", types(spec.outputs), ")");
  const std::string offers = absl::StrCat("; it offered ", offered.empty() ? "nothing" : absl::StrJoin(offered, "; "));
  if (!choice.empty() || !spec.weight_layout.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "oneDNN has no \"", choice, "\" for ", operation,
        spec.weight_layout.empty() ? "" : absl::StrCat(" with the weight packed as \"", spec.weight_layout, "\""),
        " on this processor", offers));
  }
  return absl::InternalError(
      absl::StrCat("oneDNN has no implementation but its reference loop for ", operation, offers));
}

}  // namespace mpc::cpu
