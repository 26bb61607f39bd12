// How kernels are chosen while a Program is planned.
#pragma once

#include <string>

namespace mpc::runtime {

/// How a device chooses among implementations and algorithms of one instruction.
struct PlanOptions {
  /// Time each candidate once for its shape and keep the fastest, instead of asking rules and the libraries'
  /// heuristics.
  bool tune = false;
  /// File of choices from earlier runs; "": none. It is read with or without `tune`, and choices that `tune` measures
  /// are written to it. Entries are keyed by shape, type, library versions and device; a damaged file is rebuilt.
  std::string choice_cache;
  bool allow_tf32 = false;  ///< CUDA: f32 products on tensor cores, with 10 bits of mantissa
  /// CPU: f32 convolutions with 3x3 windows by Winograd's algorithm, which multiplies less and rounds more.
  bool allow_winograd = false;
  /// CPU: a weight that a Program only reads (prediction, frozen layers) is packed once; its packing is derived state
  /// of the Model. When off, it is packed in every run, which takes no memory beside the step's.
  bool keep_packed_weights = true;
  /// How much the arena may grow so that gradients lie in flat buffers, as a share of it. 64 KiB are allowed where any
  /// growth is. 0 allows no growth; -1 means that there are no flat buffers.
  double flat_share = 0.005;
};

}  // namespace mpc::runtime
