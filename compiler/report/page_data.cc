#include "compiler/report/page_data.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/operation_properties.h"
#include "compiler/report/explanation.h"
#include "compiler/report/function_facts.h"
#include "compiler/report/fusion_table.h"
#include "compiler/report/memory_table.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/unfused_function.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc::compiler {

using llvm::json::Array;
using llvm::json::Object;

std::int64_t PageTexts::numberOf(llvm::StringRef text) {
  auto [known, isNew] = numbers.try_emplace(text, static_cast<std::int64_t>(texts.size()));
  if (isNew)
    texts.push_back(llvm::json::fixUTF8(text));
  return known->second;
}

namespace {

std::int64_t number(std::size_t value) { return static_cast<std::int64_t>(value); }

/// Whether the backward pass computes again what the forward pass has computed.
bool isRecomputed(Operation *op) {
  return op->getContext()->getLoadedDialect<MpcDialect>()->getRecomputedAttrHelper().isAttrPresent(op);
}

/// The rows of one level.
class LevelRows {
public:
  LevelRows(const UnfusedFunction &function, const MemoryTable &memory, PageTexts &texts)
      : function(function), facts(function.get()), memory(memory), texts(texts) {
    for (auto [index, cast] : llvm::enumerate(facts.getCasts()))
      casts[cast] = number(index);
    findInstructions();
  }

  /// The members of a row have the names and the order of decodeOperation in page/data.js. An operation without an
  /// instruction has -1, one without a region 0.
  Array operations(const PrecisionTable &table, const std::vector<std::string> &explanations) {
    Array rows;
    for (auto [op, row, explanation] : llvm::zip_equal(facts.getOperations(), table.rows, explanations)) {
      llvm::SetVector<std::int64_t> makers, read;
      for (Value operand : op->getOperands())
        follow(operand, makers, read);
      auto at = instructions.find(op);
      rows.push_back(Array{texts.numberOf(row.op), texts.numberOf(row.path),
                           texts.numberOf(DirectionName(row.backward, row.update)), texts.numberOf(row.inputs),
                           texts.numberOf(row.outputs), texts.numberOf(row.compute), texts.numberOf(row.reason),
                           row.bytes, row.flops, row.low ? 1 : 0, static_cast<std::int64_t>(function.regionOf(op)),
                           isRecomputed(op) ? 1 : 0, at == instructions.end() ? -1 : at->second,
                           Array(makers.getArrayRef()), Array(read.getArrayRef()), lines(explanation)});
    }
    return rows;
  }

  /// As decodeCast in page/data.js. The maker is 0 where no operation made what is cast.
  Array castRows(const PrecisionTable &table) {
    Array rows;
    for (auto [cast, record] : llvm::zip_equal(facts.getCasts(), table.cast_records)) {
      llvm::SetVector<std::int64_t> makers, ignored;
      follow(CastOp(cast).getX(), makers, ignored);
      rows.push_back(Array{texts.numberOf(CastKindName(record.kind)), texts.numberOf(record.from),
                           texts.numberOf(record.to), record.bytes, texts.numberOf(record.where),
                           makers.empty() ? 0 : makers.front()});
    }
    return rows;
  }

private:
  /// Instructions compute the operations of the step in its order, a region each as one.
  void findInstructions() {
    auto next = memory.operations.begin();
    unsigned current = 0;
    for (Operation &op : function.get().getBody().front().without_terminator()) {
      unsigned region = function.regionOf(&op);
      bool begins = region == 0 ? !isViewOrConstant(&op) : region != current;
      current = region;
      if (begins && next != memory.operations.end())
        ++next;
      if (next != memory.operations.begin() && (region != 0 || begins))
        op.walk([&](Operation *nested) { instructions[nested] = number(*std::prev(next)); });
    }
  }

  /// The operations and the casts that \p v comes from, behind casts and what only moves values.
  void follow(Value v, llvm::SetVector<std::int64_t> &makers, llvm::SetVector<std::int64_t> &read) const {
    while (Operation *op = v.getDefiningOp()) {
      if (unsigned ordinal = facts.ordinal(op)) {
        makers.insert(ordinal);
        return;
      }
      if (auto cast = casts.find(op); cast != casts.end())
        read.insert(cast->second);
      else if (!has<Property::Movement>(op))
        return;
      if (op->getNumOperands() == 0)
        return;
      v = op->getOperand(0);
    }
  }

  Array lines(llvm::StringRef text) {
    Array numbers;
    llvm::SmallVector<llvm::StringRef> parts;
    text.split(parts, '\n', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef line : llvm::drop_begin(parts))
      numbers.push_back(texts.numberOf(line));
    return numbers;
  }

  const UnfusedFunction &function;
  FunctionFacts facts;
  const MemoryTable &memory;
  PageTexts &texts;
  llvm::DenseMap<Operation *, std::int64_t> casts, instructions;
};

/// Of each region its bytes, the bytes that it saves, and the neighbours that were left out.
Array regionRows(const FusionTable &table, PageTexts &texts) {
  Array rows;
  for (const FusionRow &row : table.rows) {
    Array leftOut;
    for (const std::string &neighbour : row.left_out)
      leftOut.push_back(texts.numberOf(neighbour));
    rows.push_back(Array{row.bytes, row.bytes_saved, std::move(leftOut)});
  }
  return rows;
}

Object memoryData(const CompileResult &result, const MemoryTable &table, PageTexts &texts) {
  Array uses, live, storage;
  for (std::size_t use = 0; use < kStorageUses; ++use) {
    uses.push_back(StorageUseName(static_cast<StorageUse>(use)));
    Array series;
    for (const auto &bytes : table.live)
      series.push_back(bytes[use]);
    live.push_back(std::move(series));
  }
  for (const MemoryRow &row : table.lives)
    storage.push_back(Array{static_cast<std::int64_t>(row.use), texts.numberOf(row.op), texts.numberOf(row.path),
                            texts.numberOf(row.type), row.bytes, number(row.first), number(row.last),
                            number(row.offset)});
  const runtime::Program &program = result.program;
  return Object{{"uses", std::move(uses)},
                {"live", std::move(live)},
                {"storage", std::move(storage)},
                {"peak", number(table.peak)},
                {"peak_op", texts.numberOf(table.peak_op)},
                {"peak_cell", texts.numberOf(table.peak_path)},
                {"peak_bytes", table.peak_bytes},
                {"activation_bytes", table.activation_bytes},
                {"arena_bytes", number(program.arena_bytes)},
                {"state_bytes", number(program.state_bytes())},
                {"constant_bytes", number(program.constant_bytes())}};
}

} // namespace

absl::StatusOr<Object> pageData(const CompileResult &result, PageTexts &texts) {
  const std::string &name = result.program.name;
  absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, name);
  if (!table.ok())
    return table.status();
  absl::StatusOr<FusionTable> regions = TabulateFusion(result.final_ir, name);
  if (!regions.ok())
    return regions.status();
  absl::StatusOr<MemoryTable> memory = TabulateMemory(result.program, result.final_ir);
  if (!memory.ok())
    return memory.status();
  absl::StatusOr<std::vector<std::string>> explanations = ExplainEach(result.final_ir, name);
  if (!explanations.ok())
    return explanations.status();
  absl::StatusOr<UnfusedFunction> function = UnfusedFunction::create(result.final_ir, name);
  if (!function.ok())
    return function.status();
  LevelRows rows(*function, *memory, texts);
  return Object{{"level", result.options.level},
                {"low_type", result.options.level == "O0" ? "-" : result.options.dtype},
                {"loss_scale", result.options.loss_scale},
                {"operations", rows.operations(*table, *explanations)},
                {"casts", rows.castRows(*table)},
                {"cast_bytes", table->casts.bytes()},
                {"operation_bytes", table->bytes()},
                {"matrix_flops", table->matrix_flops()},
                {"low_matrix_flops", table->low_matrix_flops()},
                {"regions", regionRows(*regions, texts)},
                {"saved_bytes", regions->bytes_saved()},
                {"memory", memoryData(result, *memory, texts)},
                {"remarks", Array(result.remarks)}};
}

} // namespace mpc::compiler
