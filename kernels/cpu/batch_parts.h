// Kernels over images that take a part of the batch at a time. So images of a type that oneDNN lacks are widened for
// one part, not for all images at once.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

/// How the operands of a kernel follow the batch, the first axis of images.
struct BatchOperands {
  std::size_t images;   ///< operands 0 .. images - 1 are images; the others are the same for every part
  bool sums_the_batch;  ///< the result is a sum over all images; else the result is images too
};

/// How a batch is cut: parts of `images` images, and a shorter last one of `rest` where they do not fill it.
struct BatchCut {
  std::int64_t parts = 1;  ///< the last one included
  std::int64_t images = 0, rest = 0;
};

/// The cut with which a kernel of `spec` takes the batch: one part where it widens no images or few.
BatchCut CutBatch(const KernelSpec& spec, const BatchOperands& operands);

/// The spec for a part of `images` images. A sum is left in f32.
KernelSpec PartOf(const KernelSpec& spec, const BatchOperands& operands, std::int64_t images);

/// A kernel of `spec` that runs the kernels of its parts. `rest` is null where all parts are equal. Sums are added in
/// f32, part by part, and rounded once.
std::unique_ptr<Kernel> RunInParts(const KernelSpec& spec, const BatchOperands& operands, const BatchCut& cut,
                                   std::unique_ptr<Kernel> part, std::unique_ptr<Kernel> rest);

}  // namespace mpc::cpu
