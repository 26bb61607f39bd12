#include "compiler/dialect/operation_names.h"

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace mlir;

namespace mpc {

using Members = std::map<std::string, std::vector<std::string>, std::less<>>;

static Members makeNames() {
  Members names;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<MpcDialect>();
  for (RegisteredOperationName known : context.getRegisteredOperationsByDialect("mpc"))
    names[known.stripDialect().str()] = {known.stripDialect().str()};
  names["conv"] = {"conv2d"};
  names["conv_transpose"] = {"conv_transpose2d"};
  names["dense"] = {"matmul"};
  names["batch_norm"] = {"batch_norm_train", "batch_norm_infer"};
  names["max_pool"] = {"max_pool2d"};
  names["avg_pool"] = {"avg_pool2d"};
  names["sum"] = {"reduce_sum"};
  names["mean"] = {"reduce_mean"};
  names["max"] = {"reduce_max"};
  names["min"] = {"reduce_min"};
  names["prod"] = {"reduce_prod"};
  return names;
}

static const Members &names() {
  static const Members *const names = new Members(makeNames());
  return *names;
}

std::vector<std::string> operationsCalled(std::string_view name) {
  auto known = names().find(name);
  return known == names().end() ? std::vector<std::string>() : known->second;
}

std::string nearestOperation(std::string_view name) {
  std::string nearest;
  unsigned distance = ~0u;
  for (const auto &[known, unused] : names())
    if (unsigned edits = StringRef(name).edit_distance(known); edits < distance)
      std::tie(nearest, distance) = std::tie(known, edits);
  return nearest;
}

} // namespace mpc
