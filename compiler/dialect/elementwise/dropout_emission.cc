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

  Words draw(Long block) const {
    return PhiloxRounds<Unsigned>({Low(block), High(block), Low(step), Unsigned(callSite)}, {Low(seed), High(seed)});
  }
};
} // namespace

/// The word of any element: a block for each.
static Unsigned wordOf(const Generator &random, Long element) {
  Words drawn = random.draw(element >> 2);
  Unsigned place = Low(element) & 3;
  return Select(place == 0, drawn[0], Select(place == 1, drawn[1], Select(place == 2, drawn[2], drawn[3])));
}

/// The words of four times as many elements as there are blocks, in their order.
static Unsigned interleaved(const Words &drawn, unsigned blocks) {
  llvm::IRBuilder<> &builder = EmissionScope::builder();
  SmallVector<int> joined(2 * blocks), order;
  std::iota(joined.begin(), joined.end(), 0);
  for (unsigned element = 0; element < 4 * blocks; ++element)
    order.push_back(int(element % 4 * blocks + element / 4));
  llvm::Value *first = builder.CreateShuffleVector(drawn[0].value(), drawn[1].value(), joined);
  llvm::Value *second = builder.CreateShuffleVector(drawn[2].value(), drawn[3].value(), joined);
  return Unsigned(builder.CreateShuffleVector(first, second, order));
}

/// The words of a vector of elements that begins with a block: one draw for four of them.
static Unsigned wordsOfBlocks(const Generator &random, Long elements) {
  unsigned blocks = lanesOf(elements.value()) / 4;
  SmallVector<int> firsts;
  for (unsigned block = 0; block < blocks; ++block)
    firsts.push_back(int(4 * block));
  Long first(EmissionScope::builder().CreateShuffleVector(elements.value(), firsts));
  return interleaved(random.draw(first >> 2), blocks);
}

void DropoutOp::emitElement(ElementContext &context) {
  float p = getP().convertToFloat();
  Generator random{context.integerOperand(1), context.integerOperand(2), static_cast<unsigned>(getCallSite())};
  Long element = context.linearIndex();
  unsigned lanes = lanesOf(element.value());
  // A vector begins at a multiple of its lanes in its row, so at a block where rows are made of blocks.
  bool beginsWithBlock = lanes != 0 && lanes % 4 == 0 && context.count(Axis::Row) % 4 == 0;
  Unsigned word = beginsWithBlock ? wordsOfBlocks(random, element) : wordOf(random, element);
  context.setResult(0, Select(UniformFromBits(word) >= p, context.operand(0) * DropoutScale(p), 0.0f));
}

} // namespace mpc
