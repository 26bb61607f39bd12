// dropout: the draws of kernels/scalar/philox.h, four elements a block of the generator.
#include "compiler/dialect/fusible_space.h"
#include "kernels/scalar/philox.h"

#include <array>
#include <numeric>

using namespace mlir;
using namespace mpc::codegen;

namespace mpc {

namespace {
using Words = std::array<Unsigned, 4>;

struct Generator {
  Long seed, step;
  unsigned callSite;

  Words draw(Long Block) const {
    return PhiloxRounds<Unsigned>({Low(Block), High(Block), Low(step), Unsigned(callSite)}, {Low(seed), High(seed)});
  }
};
} // namespace

/// The word of any element: a block for each.
static Unsigned wordOf(const Generator &Random, Long Element) {
  Words Drawn = Random.draw(Element >> 2);
  Unsigned Place = Low(Element) & 3;
  return Select(Place == 0, Drawn[0], Select(Place == 1, Drawn[1], Select(Place == 2, Drawn[2], Drawn[3])));
}

/// The words of four times as many elements as there are blocks, in their order.
static Unsigned interleaved(const Words &Drawn, unsigned Blocks) {
  llvm::IRBuilder<> &Builder = EmissionScope::builder();
  SmallVector<int> Joined(2 * Blocks), Order;
  std::iota(Joined.begin(), Joined.end(), 0);
  for (unsigned Element = 0; Element < 4 * Blocks; ++Element)
    Order.push_back(int(Element % 4 * Blocks + Element / 4));
  llvm::Value *First = Builder.CreateShuffleVector(Drawn[0].value(), Drawn[1].value(), Joined);
  llvm::Value *Second = Builder.CreateShuffleVector(Drawn[2].value(), Drawn[3].value(), Joined);
  return Unsigned(Builder.CreateShuffleVector(First, Second, Order));
}

/// The words of a vector of elements that begins with a block: one draw for four of them.
static Unsigned wordsOfBlocks(const Generator &Random, Long Elements) {
  unsigned Blocks = lanesOf(Elements.value()) / 4;
  SmallVector<int> Firsts;
  for (unsigned Block = 0; Block < Blocks; ++Block)
    Firsts.push_back(int(4 * Block));
  Long First(EmissionScope::builder().CreateShuffleVector(Elements.value(), Firsts));
  return interleaved(Random.draw(First >> 2), Blocks);
}

void DropoutOp::emitElement(ElementContext &Context) {
  float P = getP().convertToFloat();
  Generator Random{Context.integerOperand(1), Context.integerOperand(2), static_cast<unsigned>(getCallSite())};
  Long Element = Context.linearIndex();
  unsigned Lanes = lanesOf(Element.value());
  // A vector begins at a multiple of its lanes in its row, so at a block where rows are made of blocks.
  bool BeginsWithBlock = Lanes != 0 && Lanes % 4 == 0 && Context.count(Axis::Row) % 4 == 0;
  Unsigned Word = BeginsWithBlock ? wordsOfBlocks(Random, Element) : wordOf(Random, Element);
  Context.setResult(0, Select(UniformFromBits(Word) >= P, Context.operand(0) * DropoutScale(P), 0.0f));
}

} // namespace mpc
