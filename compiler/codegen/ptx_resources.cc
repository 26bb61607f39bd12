#include "compiler/codegen/ptx_resources.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <optional>

namespace mpc::codegen {

//===-- ptxas ----------------------------------------------------------------------------------------------------===//

llvm::Expected<std::string> findPtxas() {
  if (const char *Given = std::getenv("MPC_PTXAS")) {
    if (llvm::sys::fs::can_execute(Given))
      return std::string(Given);
    return llvm::createStringError(llvm::formatv("MPC_PTXAS is '{0}', which is no program", Given));
  }
  if (llvm::ErrorOr<std::string> Found = llvm::sys::findProgramByName("ptxas"))
    return *Found;
  const char *Cuda = std::getenv("CUDA_PATH");
  for (llvm::StringRef Folder : {llvm::StringRef(Cuda ? Cuda : ""), llvm::StringRef("/usr/local/cuda")}) {
    llvm::SmallString<128> Path(Folder);
    llvm::sys::path::append(Path, "bin", "ptxas");
    if (!Folder.empty() && llvm::sys::fs::can_execute(Path))
      return std::string(Path);
  }
  return llvm::createStringError("no ptxas in PATH, CUDA_PATH/bin or /usr/local/cuda/bin; it comes with the CUDA "
                                 "toolkit, and MPC_PTXAS names another one");
}

/// A file of a unique name that is removed in the end.
static llvm::Expected<std::string> temporaryFile(llvm::StringRef Suffix, llvm::FileRemover &Remover) {
  llvm::SmallString<128> Path;
  if (std::error_code Failure = llvm::sys::fs::createTemporaryFile("mpc-kernel", Suffix, Path))
    return llvm::createStringError("no temporary file for ptxas: " + Failure.message());
  Remover.setFile(Path);
  return std::string(Path);
}

static llvm::Error writeFile(llvm::StringRef Path, llvm::StringRef Text) {
  std::error_code Failure;
  llvm::raw_fd_ostream Out(Path, Failure);
  if (!Failure) {
    Out << Text;
    Out.close();
    Failure = Out.error();
    Out.clear_error();
  }
  if (Failure)
    return llvm::createStringError("cannot write " + Path + ": " + Failure.message());
  return llvm::Error::success();
}

llvm::Expected<llvm::StringMap<KernelResources>> assembledResources(llvm::StringRef Ptx, llvm::StringRef Architecture,
                                                                    llvm::StringRef Ptxas) {
  llvm::FileRemover RemoveInput, RemoveLog;
  llvm::Expected<std::string> Input = temporaryFile("ptx", RemoveInput);
  if (!Input)
    return Input.takeError();
  llvm::Expected<std::string> Log = temporaryFile("log", RemoveLog);
  if (!Log)
    return Log.takeError();
  if (llvm::Error Failure = writeFile(*Input, Ptx))
    return Failure;
  std::string Arch = ("-arch=" + Architecture).str(), Message;
  llvm::StringRef Arguments[] = {Ptxas, "-v", Arch, "-o", "/dev/null", *Input};
  std::optional<llvm::StringRef> Redirects[] = {llvm::StringRef(), llvm::StringRef(*Log), llvm::StringRef(*Log)};
  int Status = llvm::sys::ExecuteAndWait(Ptxas, Arguments, std::nullopt, Redirects, 0, 0, &Message);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> Said = llvm::MemoryBuffer::getFile(*Log);
  llvm::StringRef Text = Said ? (*Said)->getBuffer() : llvm::StringRef();
  if (Status != 0)
    return llvm::createStringError("ptxas for " + Architecture + " failed: " + (Message.empty() ? Text : Message));
  return parsePtxasLog(Text);
}

// "32 registers" in "Used 32 registers, used 1 barriers, 1024 bytes smem": the number before \p Unit, 0 where there is
// none.
static std::int64_t numberBefore(llvm::StringRef Line, llvm::StringRef Unit) {
  size_t At = Line.find((" " + Unit).str());
  if (At == llvm::StringRef::npos)
    return 0;
  llvm::StringRef Before = Line.take_front(At);
  std::int64_t Number = 0;
  Before.take_back(Before.size() - (Before.find_last_not_of("0123456789") + 1)).getAsInteger(10, Number);
  return Number;
}

llvm::StringMap<KernelResources> parsePtxasLog(llvm::StringRef Log) {
  // The log has three lines for each kernel:
  // | ptxas info : Compiling entry function 'x' for 'sm_90'
  // | 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
  // | ptxas info : Used 32 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
  llvm::StringMap<KernelResources> Kernels;
  KernelResources *Current = nullptr;
  for (llvm::StringRef Line : llvm::split(Log, '\n')) {
    if (llvm::StringRef Name = Line.split("entry function '").second; !Name.empty())
      Current = &Kernels[Name.take_until([](char C) { return C == '\''; })];
    if (!Current)
      continue;
    if (Line.contains("bytes stack frame")) {
      Current->stack_bytes = numberBefore(Line, "bytes stack frame");
      Current->spill_bytes = numberBefore(Line, "bytes spill stores") + numberBefore(Line, "bytes spill loads");
    } else if (Line.contains("Used ")) {
      Current->registers = numberBefore(Line, "registers");
      Current->shared_bytes = numberBefore(Line, "bytes smem");
    }
  }
  return Kernels;
}

//===-- PTX ------------------------------------------------------------------------------------------------------===//

llvm::StringMap<std::int64_t> instructionCounts(llvm::StringRef Ptx) {
  llvm::StringMap<std::int64_t> Counts;
  std::int64_t *Count = nullptr;
  for (llvm::StringRef Line : llvm::split(Ptx, '\n')) {
    llvm::StringRef Text = Line.split("//").first.trim();
    if (llvm::StringRef Entry = Text.split(".entry ").second; !Entry.empty())
      Count = &Counts[Entry.take_until([](char C) { return C == '('; })];
    else if (Line.starts_with("}"))
      Count = nullptr;
    // Directives begin with a dot, labels end in a colon.
    else if (Count && Text.ends_with(";") && !Text.starts_with("."))
      ++*Count;
  }
  return Counts;
}

} // namespace mpc::codegen
