// How kernels are chosen while a Program is planned.
#pragma once

#include <string>

namespace mpc::runtime {

/// How a device chooses among implementations and algorithms of one instruction (CUDA).
struct PlanOptions {
  /// Time each once for its shape and keep the fastest, instead of asking the libraries' heuristics.
  bool tune = false;
  /// File of choices from earlier runs, read and written; "": none. Entries are keyed by shape, type, library versions
  /// and device; a damaged file is rebuilt.
  std::string choice_cache;
  bool allow_tf32 = false;  ///< f32 products on tensor cores, with 10 bits of mantissa
};

}  // namespace mpc::runtime
