// How an argument list takes polymorphic objects: temporaries are moved in, named objects are used where they are.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace mpc::internal {

template <typename T, typename Base>
concept DerivesFrom = std::derived_from<std::remove_cvref_t<T>, Base>;

/// A temporary is moved into shared ownership. A named object is borrowed: it must outlive the result.
template <typename Base, DerivesFrom<Base> Object>
std::shared_ptr<Base> ShareOrBorrow(Object&& object) {
  if constexpr (std::is_lvalue_reference_v<Object>) {
    static_assert(!std::is_const_v<std::remove_reference_t<Object>>, "the object is changed while it is used");
    return std::shared_ptr<Base>(std::shared_ptr<void>(), &object);
  } else {
    return std::make_shared<std::remove_cvref_t<Object>>(std::forward<Object>(object));
  }
}

}  // namespace mpc::internal
