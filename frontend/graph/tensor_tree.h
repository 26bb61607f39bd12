// Tensors in the shapes that `Construct` takes and returns them: single, vector, pair, tuple, struct.
#pragma once

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc::nn {
class Cell;
}  // namespace mpc::nn

namespace mpc::nn::internal {

inline void AppendInput(const Tensor& tensor, std::vector<Tensor>& inputs) { inputs.push_back(tensor); }
inline void AppendInput(const std::vector<Tensor>& tensors, std::vector<Tensor>& inputs) {
  inputs.insert(inputs.end(), tensors.begin(), tensors.end());
}

/// Converts to anything: counts the members of an aggregate.
struct AnyMember {
  template <typename T>
  operator T() const;  // NOLINT: only named in unevaluated contexts
};

template <typename T, typename... Members>
consteval std::size_t MemberCount() {
  if constexpr (requires { T{std::declval<Members>()..., std::declval<AnyMember>()}; }) {
    return MemberCount<T, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

/// The members of a struct of one to six Tensors.
template <typename T>
auto TieMembers(T& value) {
  constexpr std::size_t kCount = MemberCount<std::remove_const_t<T>>();
  static_assert(kCount >= 1 && kCount <= 6, "Construct returns a struct of one to six Tensors");
  if constexpr (kCount == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  }
}

template <typename T>
struct TensorTree {  // aggregates
  static_assert(std::is_aggregate_v<T>, "Construct returns a Tensor, or a pair, tuple, vector or struct of them");
  static void Flatten(const T& value, std::vector<Tensor>& out) {
    std::apply([&](const auto&... members) { (out.push_back(members), ...); }, TieMembers(value));
  }
  static T Unflatten(const std::vector<Tensor>& flat) {
    T value;
    std::size_t next = 0;
    std::apply([&](auto&... members) { ((members = next < flat.size() ? flat[next] : flat.back(), ++next), ...); },
               TieMembers(value));
    return value;
  }
};

template <>
struct TensorTree<Tensor> {
  static void Flatten(const Tensor& value, std::vector<Tensor>& out) { out.push_back(value); }
  static Tensor Unflatten(const std::vector<Tensor>& flat) { return flat.at(0); }
};

template <>
struct TensorTree<std::vector<Tensor>> {
  static void Flatten(const std::vector<Tensor>& value, std::vector<Tensor>& out) {
    out.insert(out.end(), value.begin(), value.end());
  }
  static std::vector<Tensor> Unflatten(const std::vector<Tensor>& flat) { return flat; }
};

template <typename... Ts>
struct TensorTree<std::tuple<Ts...>> {
  static void Flatten(const std::tuple<Ts...>& value, std::vector<Tensor>& out) {
    std::apply([&](const auto&... members) { (out.push_back(members), ...); }, value);
  }
  static std::tuple<Ts...> Unflatten(const std::vector<Tensor>& flat) {
    return FromIndices(flat, std::index_sequence_for<Ts...>());
  }

 private:
  template <std::size_t... I>
  static std::tuple<Ts...> FromIndices(const std::vector<Tensor>& flat, std::index_sequence<I...>) {
    return {(I < flat.size() ? flat[I] : flat.back())...};
  }
};

template <typename A, typename B>
struct TensorTree<std::pair<A, B>> {
  static void Flatten(const std::pair<A, B>& value, std::vector<Tensor>& out) {
    out.push_back(value.first);
    out.push_back(value.second);
  }
  static std::pair<A, B> Unflatten(const std::vector<Tensor>& flat) { return {flat.at(0), flat.back()}; }
};

/// What `Construct` takes.
template <typename T>
struct ConstructTraits;
template <typename R, typename C, typename... Args>
struct ConstructTraits<R (C::*)(Args...)> {
  using Result = std::decay_t<R>;
  static constexpr bool kVector = (std::is_same_v<std::decay_t<Args>, std::vector<Tensor>> || ...);
  static_assert(!kVector || sizeof...(Args) == 1, "a std::vector<Tensor> must be the only argument of Construct");
  static_assert(kVector || (std::is_same_v<std::decay_t<Args>, Tensor> && ...),
                "Construct takes Tensors, or one std::vector<Tensor>");
  static constexpr int kArity = kVector ? -1 : static_cast<int>(sizeof...(Args));
};
template <typename R, typename C, typename... Args>
struct ConstructTraits<R (C::*)(Args...) const> : ConstructTraits<R (C::*)(Args...)> {};

/// What `Construct` of C returns.
template <typename C>
using ConstructResult = typename ConstructTraits<decltype(&C::Construct)>::Result;

template <typename C>
constexpr int ConstructArity() {
  return ConstructTraits<decltype(&C::Construct)>::kArity;
}

template <typename C, std::size_t... I>
ConstructResult<C> CallWithIndices(C& cell, const std::vector<Tensor>& inputs, std::index_sequence<I...>) {
  return cell(inputs[I]...);
}

/// What a Cell gives that was called with another number of tensors than its Construct takes: an error.
Tensor WrongArity(const Cell& cell, int arity, std::size_t given);

/// Calls a Cell (through its operator()) on a flat list. A list of another length than Construct's is an error.
template <typename C>
ConstructResult<C> CallFlat(C& cell, const std::vector<Tensor>& inputs) {
  constexpr int kArity = ConstructArity<C>();
  if constexpr (kArity < 0) {
    return cell(inputs);
  } else {
    if (inputs.size() != static_cast<std::size_t>(kArity)) {
      return TensorTree<ConstructResult<C>>::Unflatten({WrongArity(cell, kArity, inputs.size())});
    }
    return CallWithIndices(cell, inputs, std::make_index_sequence<kArity>());
  }
}

}  // namespace mpc::nn::internal
