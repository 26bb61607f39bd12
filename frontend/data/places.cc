#include "frontend/data/places.h"

#include <algorithm>
#include <limits>

namespace mpc::data::internal {
namespace {

/// Rounds towards minus infinity.
std::int64_t FloorDivide(std::int64_t dividend, std::int64_t divisor) {
  return dividend / divisor - (dividend % divisor < 0 ? 1 : 0);
}

/// The product of a place that is not below 0 and a count of rows, or the largest number.
std::int64_t ProductOrLargest(std::int64_t place, std::int64_t rows) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(place, rows, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

}  // namespace

std::int64_t Places::Below(std::int64_t place) const {
  const std::int64_t blocks = FloorDivide(place - phase, period);
  return blocks * count + std::min(count, place - phase - blocks * period);
}

std::int64_t Places::size() const { return begin < end ? Below(end) - Below(begin) : 0; }

std::int64_t Places::At(std::int64_t n) const {
  const std::int64_t number = Below(begin) + n;
  const std::int64_t blocks = FloorDivide(number, count);
  return phase + blocks * period + (number - blocks * count);
}

std::vector<std::int64_t> Places::ToVector() const {
  std::vector<std::int64_t> places(static_cast<std::size_t>(size()));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = At(static_cast<std::int64_t>(i));
  return places;
}

PlaceOf Places::Function() const {
  return [places = *this](std::int64_t n) { return places.At(n); };
}

Places Places::OfRows(std::int64_t rows, std::int64_t end) const {
  return {.begin = ProductOrLargest(begin, rows),
          .end = std::min(ProductOrLargest(this->end, rows), end),
          .phase = phase * rows,
          .period = period * rows,
          .count = count * rows};
}

Places Places::Moved(std::int64_t distance) const {
  Places moved = *this;
  moved.begin += distance;
  moved.end += distance;
  moved.phase += distance;
  return moved;
}

Places Places::Within(std::int64_t limit) const {
  Places within = *this;
  within.begin = std::max<std::int64_t>(begin, 0);
  within.end = std::min(end, limit);
  return within;
}

}  // namespace mpc::data::internal
