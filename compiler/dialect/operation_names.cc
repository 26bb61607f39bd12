#include "compiler/dialect/operation_names.h"

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/STLExtras.h"

#include <map>

using namespace mlir;

namespace mpc {

using Members = std::map<std::string, std::vector<std::string>, std::less<>>;

static Members makeNames() {
  Members Names;
  MLIRContext Context(MLIRContext::Threading::DISABLED);
  Context.loadDialect<MpcDialect>();
  for (RegisteredOperationName Known : Context.getRegisteredOperationsByDialect("mpc"))
    Names[Known.stripDialect().str()] = {Known.stripDialect().str()};
  Names["conv"] = {"conv2d"};
  Names["conv_transpose"] = {"conv_transpose2d"};
  Names["dense"] = {"matmul"};
  Names["batch_norm"] = {"batch_norm_train", "batch_norm_infer"};
  Names["max_pool"] = {"max_pool2d"};
  Names["avg_pool"] = {"avg_pool2d"};
  Names["sum"] = {"reduce_sum"};
  Names["mean"] = {"reduce_mean"};
  Names["max"] = {"reduce_max"};
  return Names;
}

static const Members &names() {
  static const Members *const Names = new Members(makeNames());
  return *Names;
}

std::vector<std::string> operationsCalled(std::string_view Name) {
  auto Known = names().find(Name);
  return Known == names().end() ? std::vector<std::string>() : Known->second;
}

std::string nearestOperation(std::string_view Name) {
  std::string Nearest;
  unsigned Distance = ~0u;
  for (const auto &[Known, Unused] : names())
    if (unsigned This = StringRef(Name).edit_distance(Known); This < Distance)
      std::tie(Nearest, Distance) = std::tie(Known, This);
  return Nearest;
}

} // namespace mpc
