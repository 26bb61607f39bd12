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

absl::Status toStatus(llvm::Error Failure) { return absl::InvalidArgumentError(llvm::toString(std::move(Failure))); }

/// Links objects; a process has one linker. It is never destroyed: code may be in use until the process ends.
class Linker {
public:
  static llvm::Expected<Linker *> get() {
    static std::mutex Mutex;
    static Linker *Only = nullptr;
    std::lock_guard<std::mutex> Lock(Mutex);
    if (Only)
      return Only;
    llvm::Expected<std::unique_ptr<orc::SelfExecutorProcessControl>> Control =
        orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>());
    if (!Control)
      return Control.takeError();
    return Only = new Linker(std::move(*Control));
  }

  /// A library of its own, so that two objects may have functions of one name.
  llvm::Expected<orc::JITDylib *> add(llvm::StringRef Object, const orc::SymbolMap &Provided) {
    orc::JITDylib &Library = Session.createBareJITDylib("code" + std::to_string(Count++));
    if (llvm::Error Failure = Library.define(orc::absoluteSymbols(Provided)))
      return Failure;
    if (llvm::Error Failure = Layer.add(Library, llvm::MemoryBuffer::getMemBufferCopy(Object, Library.getName())))
      return Failure;
    return &Library;
  }

  orc::ExecutionSession &session() { return Session; }

private:
  explicit Linker(std::unique_ptr<orc::ExecutorProcessControl> Control) : Session(std::move(Control)), Layer(Session) {
    // The lookup that asks for a symbol returns the failure.
    Session.setErrorReporter([](llvm::Error Failure) { llvm::consumeError(std::move(Failure)); });
  }

  orc::ExecutionSession Session;
  orc::ObjectLinkingLayer Layer;
  std::atomic<unsigned> Count{0};
};

/// Functions that objects may call, by name.
class Provided {
public:
  static Provided &get() {
    static auto *const Only = new Provided;
    return *Only;
  }
  void add(llvm::StringRef Name, void *Function) {
    std::lock_guard<std::mutex> Lock(Mutex);
    Functions[Name] = Function;
  }
  orc::SymbolMap symbols(orc::ExecutionSession &Session) {
    std::lock_guard<std::mutex> Lock(Mutex);
    orc::SymbolMap Symbols;
    for (const auto &Entry : Functions)
      Symbols[Session.intern(Entry.getKey())] = {orc::ExecutorAddr::fromPtr(Entry.getValue()),
                                                 llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    return Symbols;
  }

private:
  Provided() {
    Functions["memcpy"] = reinterpret_cast<void *>(&std::memcpy);
    Functions["memset"] = reinterpret_cast<void *>(&std::memset);
  }
  std::mutex Mutex;
  llvm::StringMap<void *> Functions;
};

class LinkedObject : public runtime::LoadedCode {
public:
  LinkedObject(orc::ExecutionSession &Session, orc::JITDylib &Library) : Session(Session), Library(Library) {}
  ~LinkedObject() override {
    // Nothing that a caller could act on: the memory stays.
    llvm::consumeError(Session.removeJITDylib(Library));
  }

  absl::StatusOr<void *> Find(const std::string &Function) const override {
    llvm::Expected<orc::ExecutorSymbolDef> Symbol = Session.lookup({&Library}, Function);
    if (!Symbol)
      return absl::NotFoundError(llvm::toString(Symbol.takeError()));
    return Symbol->getAddress().toPtr<void *>();
  }

private:
  orc::ExecutionSession &Session;
  orc::JITDylib &Library;
};

absl::StatusOr<std::unique_ptr<runtime::LoadedCode>> loadObject(const runtime::CodeBlob &Blob) {
  llvm::Expected<Linker *> Linking = Linker::get();
  if (!Linking)
    return toStatus(Linking.takeError());
  llvm::StringRef Bytes(reinterpret_cast<const char *>(Blob.bytes.data()), Blob.bytes.size());
  orc::ExecutionSession &Session = (*Linking)->session();
  llvm::Expected<orc::JITDylib *> Library = (*Linking)->add(Bytes, Provided::get().symbols(Session));
  if (!Library)
    return toStatus(Library.takeError());
  return std::make_unique<LinkedObject>(Session, **Library);
}

} // namespace

void registerObjectLoader() {
  static std::once_flag Registered;
  std::call_once(Registered, [] { runtime::RegisterCodeLoader("object", loadObject); });
}

void provideFunction(llvm::StringRef Name, void *Function) { Provided::get().add(Name, Function); }

} // namespace mpc::codegen
