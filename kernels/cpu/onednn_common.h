// How oneDNN primitives become kernels. Operands are widened and reordered into the workspace where the primitive wants
// another type or layout. Then the primitive runs. The result is reordered, activated and rounded once.
#pragma once

#include <cstddef>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"
#include "kernels/dtype.h"
#include "kernels/scalar/fused_activation.h"

namespace mpc::cpu {

/// The one engine of the process.
const dnnl::engine& OnednnEngine();

/// Whether oneDNN multiplies `dtype` with the processor's own instructions, not by emulation: f32; bf16 with
/// AVX512_BF16 or AMX; f16 with AVX512_FP16, from oneDNN 3 on.
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
  /// The kernel's input behind `inputs` is what the primitive adds its result to (a sum among its attributes): of the
  /// output's layout, any type.
  bool adds_to_input = false;
  DType added = DType::kF32;  ///< its type
};

std::unique_ptr<Kernel> MakePrimitiveKernel(const StagedPrimitive& staged);

/// A primitive for a part of an operation's results, and where its operands begin in the operation's.
struct StagedPart {
  StagedPrimitive staged;
  std::vector<std::size_t> input_offsets;  ///< bytes
  std::size_t output_offset = 0;           ///< bytes
};

/// A kernel of parts that run beside each other in our own loops, each on one thread. The cut into parts depends on
/// nothing but the operation. The parts are made within a SerialLibrary.
std::unique_ptr<Kernel> MakePartsKernel(const std::vector<StagedPart>& parts);

/// While it lives, oneDNN makes primitives for one thread and runs them on the calling thread alone.
class SerialLibrary {
 public:
  /// Does nothing unless it `applies`.
  explicit SerialLibrary(bool applies = true);
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
  StagedPrimitive staged;
  std::vector<StagedPart> parts = {};  ///< used in place of `staged` unless empty
};

/// The attempt for a primitive of `description`, without its operands.
template <typename Primitive>
Attempt AttemptOf(const typename Primitive::primitive_desc& description) {
  Attempt attempt;
  attempt.implementation = description.impl_info_str();
  attempt.staged.primitive = Primitive(description);
  attempt.staged.scratchpad = description.scratchpad_desc();
  return attempt;
}

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

/// Takes the first candidate whose implementation is neither oneDNN's reference loop nor defective. Where `choice` is
/// not empty, only candidates of that name count. Where `spec` has a packed weight, only those that take it so count.
/// Error where there is none: INTERNAL or, with a choice or a packed weight, FAILED_PRECONDITION. The message names
/// `spec`'s types and shapes and every implementation that was offered.
absl::StatusOr<std::unique_ptr<Kernel>> FirstFastCandidate(const KernelSpec& spec,
                                                           const std::vector<Candidate>& candidates,
                                                           const MakeAttempt& attempt, const std::string& choice = "");

/// The names of the candidates that FirstFastCandidate could take. They all have the type that it would take. So a
/// choice changes how numbers are added, not what is rounded.
std::vector<std::string> FastCandidates(const std::vector<Candidate>& candidates, const MakeAttempt& attempt);

/// The operand types to try, best first: bf16 or f16 where every operand is stored so and it is native, then f32.
std::vector<dnnl::memory::data_type> OperandTypes(const std::vector<DType>& operands);

}  // namespace mpc::cpu
