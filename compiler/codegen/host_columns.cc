#include "compiler/codegen/host_columns.h"

namespace mpc::codegen {

static int64_t wholeVectors(const HostSchedule &s, int64_t width) { return width / s.lanes * s.lanes; }

HostColumns::HostColumns(HostFunction &f, const HostSchedule &schedule, llvm::Value *columnTile)
    : f(f), schedule(schedule), columnTile(columnTile),
      begin(f.builder().CreateMul(columnTile, f.index(schedule.columnsPerTile))) {}

void HostColumns::visitWhole(llvm::Value *end, unsigned chains, Body visit) {
  llvm::IRBuilder<> &b = f.builder();
  if (schedule.columnTiles() > 1)
    end = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateAdd(begin, f.index(schedule.columnsPerTile)), end);
  llvm::Value *next = begin;
  if (chains > 1) {
    int64_t step = static_cast<int64_t>(chains) * schedule.lanes;
    llvm::Value *turns = b.CreateSDiv(b.CreateSub(end, begin), f.index(step));
    next = b.CreateAdd(begin, b.CreateMul(turns, f.index(step)));
    f.loop(begin, next, step, [&](llvm::Value *column) {
      for (unsigned chain = 0; chain < chains; ++chain)
        visit(b.CreateAdd(column, f.index(chain * schedule.lanes)), nullptr, chain);
    });
  }
  f.loop(next, end, schedule.lanes, [&](llvm::Value *column) { visit(column, nullptr, 0); });
}

void HostColumns::visitTail(llvm::Value *hasTail, int64_t tailBegin, int64_t width, Body visit) {
  if (tailBegin == width)
    return;
  llvm::IRBuilder<> &b = f.builder();
  if (schedule.columnTiles() > 1) {
    llvm::Value *here = b.CreateICmpEQ(columnTile, f.index(tailBegin / schedule.columnsPerTile));
    hasTail = hasTail ? b.CreateAnd(hasTail, here) : here;
  }
  f.when(hasTail ? hasTail : b.getTrue(),
         [&] { visit(f.index(tailBegin), firstLanes(schedule.lanes, width - tailBegin), 0); });
}

void HostColumns::visit(llvm::Value *row, unsigned chains, Body visit) {
  llvm::IRBuilder<> &b = f.builder();
  int64_t tailBegin = wholeVectors(schedule, schedule.lastWidth);
  llvm::Value *end = f.index(tailBegin);
  llvm::Value *isLast = nullptr;
  if (schedule.hasShortRow()) {
    isLast = b.CreateICmpEQ(row, f.index(schedule.rows - 1));
    end = b.CreateSelect(isLast, end, f.index(schedule.width));
  }
  visitWhole(end, chains, visit);
  visitTail(isLast, tailBegin, schedule.lastWidth, visit);
}

void HostColumns::visitLongest(Body visit) {
  int64_t tailBegin = wholeVectors(schedule, schedule.width);
  visitWhole(f.index(tailBegin), 1, visit);
  visitTail(nullptr, tailBegin, schedule.width, visit);
}

} // namespace mpc::codegen
