#include "compiler/codegen/region_key.h"

#include "runtime/version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"

using namespace mlir;

namespace mpc::codegen {

/// A hash of the sources that emitted code follows from, made when mpc is built.
static constexpr char EmitterVersion[] =
#include "compiler/codegen/emitter_version.inc"
    ;

std::string describeRegion(FusionOp Fusion) {
  std::string Text;
  llvm::raw_string_ostream Out(Text);
  llvm::DenseMap<Value, unsigned> Numbers;
  auto Define = [&](Value V) {
    Out << " %" << Numbers.try_emplace(V, Numbers.size()).first->second << ':' << V.getType();
  };
  Block &Body = Fusion.getBody().front();
  for (BlockArgument Argument : Body.getArguments())
    Define(Argument);
  Out << '\n';
  for (Operation &Op : Body) {
    Out << Op.getName();
    for (Value Operand : Op.getOperands())
      Out << " %" << Numbers.lookup(Operand);
    if (Attribute Inherent = Op.getPropertiesAsAttribute())
      Out << ' ' << Inherent;
    Out << " ->";
    for (Value Result : Op.getResults())
      Define(Result);
    Out << '\n';
  }
  return Text;
}

std::string regionKey(FusionOp Fusion, const CodeTarget &Target) {
  llvm::BLAKE3 Hash;
  // The zero keeps what follows each other apart.
  auto Add = [&](llvm::StringRef Text) {
    Hash.update(Text);
    Hash.update(llvm::StringRef("\0", 1));
  };
  Add(MPC_VERSION);
  Add(LLVM_VERSION_STRING);
  Add(EmitterVersion);
  Add(llvm::utostr(static_cast<unsigned>(Target.backend)));
  Add(Target.triple);
  Add(Target.cpu);
  Add(Target.features);
  Add(llvm::utostr(Target.vector_bits));
  Add(llvm::itostr(Target.cache_bytes));
  Add(describeRegion(Fusion));
  return llvm::toHex(Hash.final<16>(), /*LowerCase=*/true);
}

} // namespace mpc::codegen
