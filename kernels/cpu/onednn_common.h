// How oneDNN primitives become kernels. Operands are widened and reordered into the workspace where the primitive wants
// another type or layout. Then the primitive runs. The result is reordered, activated and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"
#include "kernels/dtype.h"
#include "kernels/scalar/fused_activation.h"

namespace mpc::cpu {

/// The one engine of the process.
const dnnl::engine& OnednnEngine();

/// Whether oneDNN uses all instructions of `level`: the processor has them, and ONEDNN_MAX_CPU_ISA allows them.
bool UsesInstructionsOf(dnnl::cpu_isa level);

/// Whether oneDNN multiplies `dtype` with the processor's own instructions, not by emulation: f32; bf16 with
/// AVX512_BF16 or AMX; f16 from `LevelOfF16` on.
bool IsNative(DType dtype);

/// Strict f32 arithmetic whatever the environment says, and scratch memory given by the caller.
dnnl::primitive_attr StrictAttributes();

/// f32, bf16 or, where it is native, f16. Elsewhere f16 is widened to f32.
dnnl::memory::data_type OnednnType(DType dtype);

/// The type of a primitive's result that `activation` is applied to by our own code. relu commutes with rounding,
/// others do not: they need the f32 result. `computed` is the type of the primitive's operands.
dnnl::memory::data_type ResultType(dnnl::memory::data_type computed, DType storage, Activation activation);

/// The type of a bias of a product of `computed` operands: theirs where it is stored so, or f32.
dnnl::memory::data_type BiasType(dnnl::memory::data_type computed, DType storage);

/// The type that is stored as `type`: the inverse of OnednnType.
DType StorageOf(dnnl::memory::data_type type);
DType TypeOf(const dnnl::memory::desc& layout);

/// One operand or result on its way between storage and primitive.
struct Port {
  int argument = 0;             ///< DNNL_ARG_...
  DType storage = DType::kF32;  ///< as it lies in the kernel's operand
  dnnl::memory::desc stored;    ///< layout of the operand, in the type that the primitive takes
  dnnl::memory::desc wanted;    ///< layout that the primitive takes
  bool is_weight = false;       ///< an instruction of its own may pack it (Kernel::packing)
};

/// A primitive with its operands (in the order of the kernel's inputs) and its result.
struct StagedPrimitive {
  dnnl::primitive primitive;
  dnnl::memory::desc scratchpad;
  std::vector<Port> inputs;
  Port output;
  Activation activation = Activation::kNone;
};

/// A kernel that runs the primitive on the calling thread. It is made and run within a SerialLibrary.
std::unique_ptr<Kernel> MakePrimitiveKernel(const StagedPrimitive& staged);

/// A part of an operation: one of its primitives, and where that one's operands begin in the operation's.
struct StagedPart {
  std::size_t primitive = 0;               ///< index in StagedOperation::primitives
  std::vector<std::size_t> input_offsets;  ///< bytes, of each input; empty: zeros
  std::size_t output_offset = 0;           ///< bytes
};

/// A result that is finished as a whole, when all parts have stored what they computed.
struct WholeResult {
  std::int64_t elements = 0;
  DType computed = DType::kF32;  ///< what parts store
  DType storage = DType::kF32;
  Activation activation = Activation::kNone;
  /// Partial sums, in f32, that are added in their order. 1: parts store elements of their own. Else neighbouring parts
  /// belong to a partial sum, about equally many to each, and each part computes a summand of every element.
  std::int64_t partial_sums = 1;
  /// How sums lie, where the result is stored otherwise: it changes once, when they are added.
  struct Layouts {
    dnnl::memory::desc summed, stored;
  };
  std::optional<Layouts> layouts = {};
};

/// An operation as primitives for one thread each, called in parts that follow from shapes and types alone.
struct StagedOperation {
  std::vector<StagedPrimitive> primitives;
  std::vector<StagedPart> parts;
  /// Operands that are converted or packed once for all parts, by input. Parts take them as they are wanted there.
  std::vector<std::optional<Port>> prepared = {};
  /// Without it parts finish what they store.
  std::optional<WholeResult> whole = {};
  /// The type of the kernel's input behind those of the primitives. Its elements are put where parts add their results
  /// to them (a sum among the primitive's attributes). Needs `whole`.
  std::optional<DType> addend = {};
  /// The most parts that run at a time: each has scratch memory of its own.
  std::int64_t slots = kMostParts;

  /// Parts of an operation, unless their scratch memory asks for more: what shapes are cut into, whatever the threads.
  static constexpr std::int64_t kMostParts = 16;
};

/// The kernel of an operation. Parts run beside each other in our own loops. The library starts no threads.
std::unique_ptr<Kernel> MakePartsKernel(const StagedOperation& operation);

/// While it lives, oneDNN makes primitives for one thread and runs them on the calling thread alone.
class SerialLibrary {
 public:
  SerialLibrary();
  ~SerialLibrary();
  SerialLibrary(const SerialLibrary&) = delete;
  SerialLibrary& operator=(const SerialLibrary&) = delete;

 private:
  int threads_;
};

/// One way to ask oneDNN for an operation.
struct Candidate {
  dnnl::memory::data_type type;     ///< type of the operands
  dnnl::memory::format_tag layout;  ///< layout of the activations
  std::string way = {};             ///< what tells candidates of a type apart: "nhwc", "winograd"
  bool last_resort = false;         ///< known to be slow: not measured where there is another

  std::string choice() const;  ///< "f32 winograd": its name in choice tables
};

/// The outcome of a candidate. Making it throws dnnl::error where oneDNN has no such primitive.
struct Attempt {
  std::string implementation;  ///< oneDNN's name for it, "brgconv:avx512_core"
  std::string defect;          ///< why it must not be used although it is fast; empty if nothing is known
  StagedOperation operation;

  /// The primitive, where there is one for all parts.
  StagedPrimitive& staged() { return operation.primitives.front(); }
  /// Takes the primitive of a part, with the name of its implementation and its defect.
  void Add(Attempt part);
};

/// The attempt for a primitive of `description`, without its operands.
template <typename Primitive>
Attempt AttemptOf(const typename Primitive::primitive_desc& description) {
  Attempt attempt;
  attempt.implementation = description.impl_info_str();
  attempt.operation.primitives.push_back({Primitive(description), description.scratchpad_desc(), {}, {}});
  attempt.operation.parts.emplace_back();
  return attempt;
}

/// Whether its implementation is neither oneDNN's reference loop nor defective.
bool IsFast(const Attempt& attempt);

using MakeAttempt = std::function<Attempt(const Candidate&)>;

/// What a primitive does with its sums before it rounds and stores them, and what our own code does behind it.
struct Epilogue {
  dnnl::post_ops in_primitive;
  dnnl::memory::data_type result;  ///< type of the primitive's result
  Activation behind = Activation::kNone;
};

/// The attempt that `make` makes with `activation`. gelu is computed in the primitive where a fast implementation takes
/// it. NaN and infinities come through there. They do not in the form with erf of oneDNN 3 with AVX-512, which is not
/// used. Its error is at most 6 units of 2^-24 of its argument, which is below
/// that of a sum. Elsewhere our own code computes it, as it computes all other activations. oneDNN's relu is not used:
/// it turns NaN into 0, which would hide an overflow. `computed` is the type of the primitive's operands.
Attempt AttemptWithActivation(dnnl::memory::data_type computed, DType storage, Activation activation,
                              const std::function<Attempt(const Epilogue&)>& make);

/// An attempt that may be used.
struct Resolved {
  Attempt attempt;
  std::string choice;
  std::optional<WeightPacking> packing;  ///< how an instruction packs the weight for it
};

/// Takes the first candidate whose implementation is neither oneDNN's reference loop nor defective. Where `choice` is
/// not empty, only candidates of that name count. Where `spec` has a packed weight, only those that take it so count.
/// Error where there is none: INTERNAL or, with a choice or a packed weight, FAILED_PRECONDITION. The message names
/// `spec`'s types and shapes and every implementation that was offered.
absl::StatusOr<Resolved> FirstFastCandidate(const KernelSpec& spec, const std::vector<Candidate>& candidates,
                                            const MakeAttempt& attempt, const std::string& choice = "");

/// How an instruction packs the weight for an attempt. Nothing where it lies as primitives take it, where they want it
/// differently, or where the layout has no name.
std::optional<WeightPacking> PackingOf(const Attempt& attempt, const std::string& choice);

/// The kernel of an attempt that may be used, with its choice and packing; or the error.
absl::StatusOr<std::unique_ptr<Kernel>> KernelOf(absl::StatusOr<Resolved> resolved);

/// The names of the candidates that FirstFastCandidate could take. They all have the type that it would take. So a
/// choice changes how numbers are added, not what is rounded.
std::vector<std::string> FastCandidates(const std::vector<Candidate>& candidates, const MakeAttempt& attempt);

/// The operand types to try, best first: bf16 or f16 where every operand is stored so and it is native, then f32.
std::vector<dnnl::memory::data_type> OperandTypes(const std::vector<DType>& operands);

}  // namespace mpc::cpu
