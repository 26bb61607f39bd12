#include "compiler/codegen/host_columns.h"

namespace mpc::codegen {

static int64_t wholeVectors(const HostSchedule &S, int64_t Width) { return Width / S.lanes * S.lanes; }

HostColumns::HostColumns(HostFunction &F, const HostSchedule &Schedule, llvm::Value *ColumnTile)
    : F(F), Schedule(Schedule), ColumnTile(ColumnTile),
      Begin(F.builder().CreateMul(ColumnTile, F.index(Schedule.columnsPerTile))) {}

void HostColumns::visitWhole(llvm::Value *End, unsigned Chains, Body Visit) {
  llvm::IRBuilder<> &B = F.builder();
  if (Schedule.columnTiles() > 1)
    End = B.CreateBinaryIntrinsic(llvm::Intrinsic::smin, B.CreateAdd(Begin, F.index(Schedule.columnsPerTile)), End);
  llvm::Value *Next = Begin;
  if (Chains > 1) {
    int64_t Step = static_cast<int64_t>(Chains) * Schedule.lanes;
    llvm::Value *Turns = B.CreateSDiv(B.CreateSub(End, Begin), F.index(Step));
    Next = B.CreateAdd(Begin, B.CreateMul(Turns, F.index(Step)));
    F.loop(Begin, Next, Step, [&](llvm::Value *Column) {
      for (unsigned Chain = 0; Chain < Chains; ++Chain)
        Visit(B.CreateAdd(Column, F.index(Chain * Schedule.lanes)), nullptr, Chain);
    });
  }
  F.loop(Next, End, Schedule.lanes, [&](llvm::Value *Column) { Visit(Column, nullptr, 0); });
}

void HostColumns::visitTail(llvm::Value *HasTail, int64_t TailBegin, int64_t Width, Body Visit) {
  if (TailBegin == Width)
    return;
  llvm::IRBuilder<> &B = F.builder();
  if (Schedule.columnTiles() > 1) {
    llvm::Value *Here = B.CreateICmpEQ(ColumnTile, F.index(TailBegin / Schedule.columnsPerTile));
    HasTail = HasTail ? B.CreateAnd(HasTail, Here) : Here;
  }
  F.when(HasTail ? HasTail : B.getTrue(),
         [&] { Visit(F.index(TailBegin), firstLanes(Schedule.lanes, Width - TailBegin), 0); });
}

void HostColumns::visit(llvm::Value *Row, unsigned Chains, Body Visit) {
  llvm::IRBuilder<> &B = F.builder();
  int64_t TailBegin = wholeVectors(Schedule, Schedule.lastWidth);
  llvm::Value *End = F.index(TailBegin);
  llvm::Value *IsLast = nullptr;
  if (Schedule.hasShortRow()) {
    IsLast = B.CreateICmpEQ(Row, F.index(Schedule.rows - 1));
    End = B.CreateSelect(IsLast, End, F.index(Schedule.width));
  }
  visitWhole(End, Chains, Visit);
  visitTail(IsLast, TailBegin, Schedule.lastWidth, Visit);
}

void HostColumns::visitLongest(Body Visit) {
  int64_t TailBegin = wholeVectors(Schedule, Schedule.width);
  visitWhole(F.index(TailBegin), 1, Visit);
  visitTail(nullptr, TailBegin, Schedule.width, Visit);
}

} // namespace mpc::codegen
