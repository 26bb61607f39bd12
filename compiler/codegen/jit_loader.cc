#include "compiler/codegen/jit_loader.h"

#include "runtime/code_loader.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"

#include <atomic>
#include <cstring>
#include <mutex>

namespace orc = llvm::orc;

namespace mpc::codegen {

namespace {

absl::Status toStatus(llvm::Error failure) { return absl::InvalidArgumentError(llvm::toString(std::move(failure))); }

/// Links objects; a process has one linker. It is never destroyed: code may be in use until the process ends.
class Linker {
public:
  static llvm::Expected<Linker *> get() {
    static std::mutex mutex;
    static Linker *only = nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    if (only)
      return only;
    llvm::Expected<std::unique_ptr<orc::SelfExecutorProcessControl>> control =
        orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
    if (!control)
      return control.takeError();
    return only = new Linker(std::move(*control));
  }

  /// A library of its own, so that two objects may have functions of one name.
  llvm::Expected<orc::JITDylib *> add(llvm::StringRef object, const orc::SymbolMap &provided) {
    orc::JITDylib &library = session.createBareJITDylib("code" + std::to_string(count++));
    if (llvm::Error failure = library.define(orc::absoluteSymbols(provided)))
      return failure;
    if (llvm::Error failure = layer.add(library, llvm::MemoryBuffer::getMemBufferCopy(object, library.getName())))
      return failure;
    return &library;
  }

  orc::ExecutionSession &getSession() { return session; }

private:
  explicit Linker(std::unique_ptr<orc::ExecutorProcessControl> control) : session(std::move(control)), layer(session) {
    // The lookup that asks for a symbol returns the failure.
    session.setErrorReporter([](llvm::Error failure) { llvm::consumeError(std::move(failure)); });
  }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  std::atomic<unsigned> count{0};
};

/// Functions that objects may call, by name.
class Provided {
public:
  static Provided &get() {
    static auto *const only = new Provided;
    return *only;
  }
  void add(llvm::StringRef name, void *function) {
    std::lock_guard<std::mutex> lock(mutex);
    functions[name] = function;
  }
  orc::SymbolMap symbols(orc::ExecutionSession &session) {
    std::lock_guard<std::mutex> lock(mutex);
    orc::SymbolMap symbols;
    for (const auto &entry : functions)
      symbols[session.intern(entry.getKey())] = {orc::ExecutorAddr::fromPtr(entry.getValue()),
                                                 llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    return symbols;
  }

private:
  Provided() {
    functions["memcpy"] = reinterpret_cast<void *>(&std::memcpy);
    functions["memset"] = reinterpret_cast<void *>(&std::memset);
  }
  std::mutex mutex;
  llvm::StringMap<void *> functions;
};

class LinkedObject : public runtime::LoadedCode {
public:
  LinkedObject(orc::ExecutionSession &session, orc::JITDylib &library) : session(session), library(library) {}
  ~LinkedObject() override {
    // Nothing that a caller could act on: the memory stays.
    llvm::consumeError(session.removeJITDylib(library));
  }

  absl::StatusOr<void *> Find(const std::string &function) const override {
    llvm::Expected<orc::ExecutorSymbolDef> symbol = session.lookup({&library}, function);
    if (!symbol)
      return absl::NotFoundError(llvm::toString(symbol.takeError()));
    return symbol->getAddress().toPtr<void *>();
  }

private:
  orc::ExecutionSession &session;
  orc::JITDylib &library;
};

absl::StatusOr<std::unique_ptr<runtime::LoadedCode>> loadObject(const runtime::CodeBlob &blob) {
  llvm::Expected<Linker *> linking = Linker::get();
  if (!linking)
    return toStatus(linking.takeError());
  llvm::StringRef bytes(reinterpret_cast<const char *>(blob.bytes.data()), blob.bytes.size());
  orc::ExecutionSession &session = (*linking)->getSession();
  llvm::Expected<orc::JITDylib *> library = (*linking)->add(bytes, Provided::get().symbols(session));
  if (!library)
    return toStatus(library.takeError());
  return std::make_unique<LinkedObject>(session, **library);
}

} // namespace

void registerObjectLoader() {
  static std::once_flag registered;
  std::call_once(registered, [] { runtime::RegisterCodeLoader("object", loadObject); });
}

void provideFunction(llvm::StringRef name, void *function) { Provided::get().add(name, function); }

} // namespace mpc::codegen
