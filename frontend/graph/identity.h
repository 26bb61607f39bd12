// What a compiled step knows the objects by that it was traced from. Not part of the public API.
#pragma once

#include <memory>
#include <set>

#include "frontend/graph/context.h"

namespace mpc::internal {

/// A member of an object that steps are traced from: a Cell, an optimizer, a scaler. A copy of the object is another
/// one. So is an object that was assigned to: what was traced from it before holds no longer.
class Identity {
 public:
  /// Expires with the object, and when the object becomes another one.
  using Mark = std::weak_ptr<const void>;

  Identity() : mark_(std::make_shared<char>()) {}
  Identity(const Identity&) : Identity() {}
  ~Identity() = default;
  Identity& operator=(const Identity& other) {
    if (this != &other) Renew();
    return *this;
  }

  /// Makes the object another one.
  void Renew() {
    mark_ = std::make_shared<char>();
    StructureChanged();
  }
  Mark mark() const { return mark_; }

 private:
  std::shared_ptr<const char> mark_;
};

using IdentityMarks = std::set<Identity::Mark, std::owner_less<Identity::Mark>>;

}  // namespace mpc::internal
