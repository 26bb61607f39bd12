// How training is spread over processes: MindSpore's auto parallel context.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/dtype.h"

namespace mpc {

/// What of a training step each process has. The last three are MindSpore's and are refused.
enum class ParallelMode : std::uint8_t {
  kStandAlone,        ///< all of it, and processes know nothing of each other
  kDataParallel,      ///< the whole network, and a share of the batches
  kHybridParallel,    ///< what the program says for each operation
  kSemiAutoParallel,  ///< a part of the network that the program names
  kAutoParallel,      ///< a part of the network that is searched for
};

/// In which order gradients are added.
enum class GradientReduction : std::uint8_t {
  kOrdered,  ///< a balanced tree over the micro-batches of an update: the same bits with any number of ranks
  kFast,     ///< the order of the transport's own: the same bits in all ranks, and others with another number of them
};

/// What the weight of a micro-batch's loss in an update is. It acts where parallel_mode is kDataParallel, in one
/// process that accumulates, too.
///
/// kElements is for losses that leave elements out by a mean of their own: CrossEntropyLoss and NLLLoss with the
/// reduction "mean", and what calls nn::MeanOfCounted. Where the micro-batches of an update have equally many elements,
/// the update is that of the mean over all elements that count. A weight does not know how many elements a micro-batch
/// has. So elements of a smaller one have larger weights in an update. A micro-batch in which none counts adds nothing,
/// and has the loss 0. An update in which none counts has gradients of zero. Other losses have equal weights.
enum class LossWeight : std::uint8_t {
  kRows,      ///< the same weight for every micro-batch, however many rows it has
  kElements,  ///< the share of its own elements that count: those that `ignore_index` does not leave out
};

/// MindSpore's names. `gradients_mean` is true by default: the update is that of the mean loss over all ranks. So a
/// learning rate keeps its meaning with any number of ranks. MindSpore's default is false, which adds the ranks'
/// gradients: N ranks update by N times the mean.
///
/// `communication_dtype` is f32, f16 or bf16. Of a low type the scaled gradients are rounded to it, and so is each
/// addition, whichever transport carries it. One process that accumulates rounds in the same way. f16 needs loss
/// scaling.
struct AutoParallelOptions {
  ParallelMode parallel_mode = ParallelMode::kStandAlone;
  bool gradients_mean = true;               ///< divides the sum of gradients by the number of ranks
  DType communication_dtype = DType::kF32;  ///< the type in which gradients are added
  GradientReduction reduction = GradientReduction::kOrdered;
  LossWeight loss_weight = LossWeight::kRows;
  /// MiB of gradients that travel as one message, 0 to 1048576. 0: every gradient is a message of its own. It has to be
  /// the same in all processes, and does not change bits.
  std::int64_t bucket_mib = 25;
  friend bool operator==(const AutoParallelOptions&, const AutoParallelOptions&) = default;
};

/// Sets how Models and steps that are made from now on train. It may be called before or after distributed::Init. An
/// error leaves the context as it was. Errors (INVALID_ARGUMENT), with what was given and what is accepted: a mode but
/// kStandAlone and kDataParallel, and a bucket_mib out of range. So is a communication_dtype but f32, f16 and bf16, and
/// kElements where gradients_mean is false. In kStandAlone loss_weight, communication_dtype, reduction and bucket_mib
/// have to be the defaults, as nothing would follow them. nn::DistributedGradReducer follows gradients_mean.
absl::Status SetAutoParallelContext(const AutoParallelOptions& options);
/// The defaults again.
void ResetAutoParallelContext();
/// MindSpore's get_auto_parallel_context.
const AutoParallelOptions& GetAutoParallelContext();

}  // namespace mpc
