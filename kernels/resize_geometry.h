// Where the pixels of mpc.resize come from. Positions are fractions of integers, so that no rounding moves a pixel.
#pragma once

#include <cstdint>

#include "kernels/attributes.h"
#include "kernels/host_device.h"
#include "kernels/known_attributes.h"
#include "kernels/tensor_spec.h"
#include "kernels/window.h"

namespace mpc {

/// The pixels of one axis of x that a pixel of y reads, with their weights. Where the second has the weight 0, it is
/// not read, and the first has the weight 1.
template <typename Int>
struct ResizeTap {
  Int first, second;
  float first_weight, second_weight;

  MPC_HOST_DEVICE bool has_second() const { return second_weight != 0.0f; }
  /// The value between the two pixels' values.
  MPC_HOST_DEVICE float Between(float at_first, float at_second) const {
    return first_weight * at_first + second_weight * at_second;
  }
};

/// Pixels [begin, end).
template <typename Int>
struct PixelRange {
  Int begin, end;
};

/// One axis. Pixel i of y lies at (scale * i + shift) / denominator of x's axis, held to [0, input - 1]. Nearest takes
/// the pixel at the integer below. `Int` must hold 2 * input * output + 2 * input.
template <typename Int>
struct ResizeAxis {
  Int input, output;
  Int scale, shift, denominator;
  bool nearest;

  static ResizeAxis Create(Interpolation interpolation, Coordinates coordinates, Int input, Int output) {
    const bool nearest = interpolation == Interpolation::kNearest;
    switch (coordinates) {
      case Coordinates::kAsymmetric:
        return {input, output, input, 0, output, nearest};
      case Coordinates::kHalfPixel:
        // (i + 1/2) * input / output is the position in pixels' corners. Their centres lie 1/2 before.
        return {input, output, 2 * input, nearest ? input : input - output, 2 * output, nearest};
      case Coordinates::kAlignCorners:
        break;
    }
    if (output == 1) return {input, output, 0, 0, 1, nearest};
    // Nearest rounds a half up.
    if (nearest) return {input, output, 2 * (input - 1), output - 1, 2 * (output - 1), nearest};
    return {input, output, input - 1, 0, output - 1, nearest};
  }

  /// The position of pixel i of y, times the denominator.
  MPC_HOST_DEVICE Int Numerator(Int i) const {
    const Int position = scale * i + shift;
    const Int last = (input - 1) * denominator;
    return position < 0 ? 0 : position > last ? last : position;
  }

  MPC_HOST_DEVICE ResizeTap<Int> TapOf(Int i) const {
    const Int position = Numerator(i);
    const Int first = position / denominator;
    const Int rest = nearest ? 0 : position - first * denominator;
    return {first, rest == 0 ? first : first + 1, Quotient(denominator - rest), Quotient(rest)};
  }

  /// The pixels of y that read pixel `at` of x, each with a weight above 0.
  MPC_HOST_DEVICE PixelRange<Int> ReadersOf(Int at) const {
    const Int below = nearest ? at * denominator : (at - 1) * denominator + 1;
    return {at == 0 ? 0 : FirstFrom(below), at == input - 1 ? output : FirstFrom((at + 1) * denominator)};
  }

  /// The weight of pixel `at` of x in pixel i of y, one of its readers. It is that of TapOf, bit by bit.
  MPC_HOST_DEVICE float WeightOf(Int i, Int at) const {
    if (nearest) return 1.0f;
    const Int distance = Numerator(i) - at * denominator;
    return Quotient(denominator - (distance < 0 ? -distance : distance));
  }

 private:
  MPC_HOST_DEVICE float Quotient(Int part) const { return static_cast<float>(part) / static_cast<float>(denominator); }

  /// The first pixel of y whose position times the denominator is `value` > 0 or more.
  MPC_HOST_DEVICE Int FirstFrom(Int value) const {
    if (value <= shift) return 0;
    if (scale == 0) return output;
    const Int first = (value - shift - 1) / scale + 1;
    return first < output ? first : output;
  }
};

/// Images in NCHW and NHWC as one form: `outer` images with `inner` contiguous values a pixel.
template <typename Int>
struct ResizeGeometry {
  ResizeAxis<Int> rows, columns;
  std::int64_t outer, inner;

  /// Of an image of shape `x`, resized to shape `y`.
  static ResizeGeometry Create(const Attributes& attributes, const Shape& x, const Shape& y) {
    const DataFormat format = attributes.Get(attribute::kDataFormat);
    const ImageAxes axes = AxesOf(format);
    const auto axis = [&](int at) {
      const auto extent = static_cast<std::size_t>(at);
      return ResizeAxis<Int>::Create(attributes.Get(attribute::kInterpolation), attributes.Get(attribute::kCoordinates),
                                     static_cast<Int>(x[extent]), static_cast<Int>(y[extent]));
    };
    const std::int64_t batch = x[static_cast<std::size_t>(axes.batch)];
    const std::int64_t channels = x[static_cast<std::size_t>(axes.channel)];
    const bool channels_last = format == DataFormat::kNHWC;
    return {axis(axes.height), axis(axes.width), channels_last ? batch : batch * channels,
            channels_last ? channels : 1};
  }

  /// The values of an image before and after.
  MPC_HOST_DEVICE std::int64_t input_image() const {
    return static_cast<std::int64_t>(rows.input) * columns.input * inner;
  }
  MPC_HOST_DEVICE std::int64_t output_image() const {
    return static_cast<std::int64_t>(rows.output) * columns.output * inner;
  }
};

}  // namespace mpc
