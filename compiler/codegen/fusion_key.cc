#include "compiler/codegen/fusion_key.h"

#include "runtime/version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"

using namespace mlir;

namespace mpc::codegen {

/// A hash of the sources that emitted code follows from, made when mpc is built.
static constexpr char emitterVersion[] =
#include "compiler/codegen/emitter_version.inc"
    ;

std::string describeFusion(FusionOp fusion) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::DenseMap<Value, unsigned> numbers;
  auto define = [&](Value v) {
    out << " %" << numbers.try_emplace(v, numbers.size()).first->second << ':' << v.getType();
  };
  Block &body = fusion.getBody().front();
  for (BlockArgument argument : body.getArguments())
    define(argument);
  out << '\n';
  for (Operation &op : body) {
    out << op.getName();
    for (Value operand : op.getOperands())
      out << " %" << numbers.lookup(operand);
    if (Attribute inherent = op.getPropertiesAsAttribute())
      out << ' ' << inherent;
    out << " ->";
    for (Value result : op.getResults())
      define(result);
    out << '\n';
  }
  return text;
}

std::string fusionKey(FusionOp fusion, const CodeTarget &target) {
  llvm::BLAKE3 hash;
  // The zero keeps what follows each other apart.
  auto add = [&](llvm::StringRef text) {
    hash.update(text);
    hash.update(llvm::StringRef("\0", 1));
  };
  add(MPC_VERSION);
  add(LLVM_VERSION_STRING);
  add(emitterVersion);
  add(llvm::utostr(static_cast<unsigned>(target.backend)));
  add(target.triple);
  add(target.cpu);
  add(target.features);
  add(llvm::utostr(target.vector_bits));
  add(llvm::itostr(target.cache_bytes));
  // Absent where the processor says it, so that keys of earlier caches stay.
  if (target.shared_bytes != 0)
    add("shared " + llvm::utostr(target.shared_bytes));
  add(describeFusion(fusion));
  return llvm::toHex(hash.final<16>(), /*lowerCase=*/true);
}

} // namespace mpc::codegen
