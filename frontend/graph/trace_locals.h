// What parts of the front end keep with a trace. Not part of the public API.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <typeindex>
#include <utility>
#include <vector>

namespace mpc::internal {

/// Objects that live as long as a trace, and hooks that run at the end of its step. The trace knows none of their
/// types.
class TraceLocals {
 public:
  /// The object of type T; there is one for each type.
  template <typename T>
  T& Get() {
    std::shared_ptr<void>& object = objects_[std::type_index(typeid(T))];
    if (object == nullptr) object = std::make_shared<T>();
    return *static_cast<T*>(object.get());
  }
  /// Calls `hook` when the step ends, before its state is collected.
  void AtEnd(std::function<void()> hook) { end_hooks_.push_back(std::move(hook)); }
  void RunEndHooks() {
    for (const std::function<void()>& hook : std::exchange(end_hooks_, {})) hook();
  }

 private:
  std::map<std::type_index, std::shared_ptr<void>> objects_;
  std::vector<std::function<void()>> end_hooks_;
};

}  // namespace mpc::internal
