#include "kernels/kernel_key.h"

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc {
namespace {

struct AttributeText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const { return value; }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return absl::StrCat("[", absl::StrJoin(values, ","), "]");
  }
};

}  // namespace

std::string TypesOf(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ",
                       [](std::string* out, const TensorSpec& spec) { absl::StrAppend(out, spec.ToString()); });
}

std::string KernelKey(const KernelSpec& spec) {
  const std::string attributes =
      absl::StrJoin(spec.attributes.entries(), ",", [](std::string* out, const Attributes::Entry& entry) {
        absl::StrAppend(out, entry.first, "=", std::visit(AttributeText(), entry.second));
      });
  return absl::StrCat(spec.name, "(", TypesOf(spec.inputs), ")->(", TypesOf(spec.outputs), "){", attributes, "}");
}

}  // namespace mpc
