#include "compiler/lowering/sequence_values.h"

#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"

#include <cassert>
#include <utility>

using namespace mlir;

namespace mpc::compiler {

void SequenceValues::declare(Value v) {
  if (records.contains(v))
    return;
  Value root = storage.root(v);
  runtime::Value record;
  if (isa<BlockArgument>(root) || root.getDefiningOp<ConstantOp>())
    record = recordOf(root);
  record.spec = toTensorSpec(cast<RankedTensorType>(v.getType()));
  records.try_emplace(v, std::move(record));
}

const runtime::Value &SequenceValues::recordOf(Value v) const {
  auto known = records.find(v);
  assert(known != records.end() && "values are declared before they are asked for");
  return known->second;
}

runtime::ValueId SequenceValues::idOf(Value v) {
  if (auto known = ids.find(v); known != ids.end())
    return known->second;
  runtime::ValueId id = add(recordOf(v));
  ids[v] = id;
  if (runtime::Storage where = recordOf(v).storage;
      where == runtime::Storage::kTemporary || where == runtime::Storage::kInput)
    arenaValues[storage.root(v)].push_back(id);
  return id;
}

runtime::ValueId SequenceValues::add(runtime::Value record) {
  program.values.push_back(std::move(record));
  return static_cast<runtime::ValueId>(program.values.size() - 1);
}

void SequenceValues::addViews(Value v, llvm::ArrayRef<runtime::ValueId> views) {
  llvm::append_range(arenaValues[storage.root(v)], views);
}

} // namespace mpc::compiler
