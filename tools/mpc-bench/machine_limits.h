// What the processor can do at most, measured: copying memory that no cache holds, and multiplying.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"
#include "runtime/aligned_buffer.h"

namespace mpc::tools {

/// Bytes of memory that can be had without swapping.
std::size_t AvailableBytes();

/// Copies between two buffers that are together twice the last-level cache, a piece after another, on all of mpc's
/// threads.
class CopyProbe {
 public:
  /// `footprint` bytes for both buffers. Chooses the fastest form of copying.
  explicit CopyProbe(std::size_t footprint);

  /// Copies the next piece; returns bytes read and written a second.
  double Measure();

  std::string_view form() const;  ///< "memcpy", "streaming stores"
  std::size_t footprint() const { return 2 * source_.size(); }

 private:
  double Copy(bool streaming);

  runtime::AlignedBuffer source_;
  runtime::AlignedBuffer target_;
  std::size_t piece_;
  std::size_t next_ = 0;
  bool streaming_ = false;
};

/// Floating-point operations a second of multiply-adds on registers, on all of mpc's threads; see vector_loops.h.
double MeasureMultiplyAdd(DType dtype);

/// The instructions that MeasureMultiplyAdd used: "avx512f", "avx2 and fma", "avx512_bf16", "amx_bf16".
std::string_view MultiplyAddInstructions(DType dtype);

}  // namespace mpc::tools
