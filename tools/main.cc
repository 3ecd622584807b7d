// rehearse: the command-line program. Finds the subcommand and turns exceptions into exit codes
// (0 done, 1 the user's mistake, 2 our own fault) and signals into 130 and 143.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <typeinfo>
#include <vector>

#include <cxxabi.h>
#include <fmt/format.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/known_names.h"
#include "sim/base/say.h"
#include "sim/base/version.h"
#include "tools/command.h"
#include "tools/heap.h"

namespace rehearse {
namespace {

void PrintHelp() {
  std::string text =
      "Rehearse a training run on a cluster that you do not have yet.\n\n"
      "usage: rehearse COMMAND [arguments]\n\n";
  for (const Command& command : Commands())
    text += fmt::format("  {:<11} {}\n", command.name, command.summary);
  text +=
      "\n'rehearse help COMMAND' explains a command. Where a file is read, - is standard input;\n"
      "where one is written, standard output. Start with\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json\n";
  std::fputs(text.c_str(), stdout);
}

bool ran_for_real = false;  // on this machine's CPUs or GPUs, not simulated

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

int Dispatch(std::vector<std::string> arguments) {
  if (arguments.size() > 1 && AsksForHelp(arguments[0])) {  // help run: run --help
    arguments = {arguments[1], "--help"};
  }
  if (arguments.empty() || AsksForHelp(arguments[0])) {
    PrintHelp();
    return arguments.empty() ? 1 : 0;
  }
  if (arguments[0] == "--version" || (arguments.size() == 2 && arguments[1] == "--version")) {
    std::fputs(fmt::format("rehearse {} ({})\n", Version(), BuildCommit()).c_str(), stdout);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (arguments[0] == command.name) {
      ran_for_real = command.runs_for_real;
      return command.run({arguments.begin() + 1, arguments.end()});
    }
    names.emplace_back(command.name);
  }
  throw Error(fmt::format("unknown command \"{}\"{}", arguments[0],
                          KnownNames(arguments[0], names, "rehearse --help")));
}

// Must be called in a catch; returns the exit code.
int SayWhatWasThrown() noexcept {
  constexpr const char* kFault = "a fault of rehearse itself, please report it: ";
  try {
    throw;
  } catch (const Error& error) {
    Say(error.what());
    return 1;
  } catch (const Stopped& stopped) {
    Say(fmt::format("{}: {}", StopWords(), stopped.what()));
    return StopCode();
  } catch (const NeedsWholeProgram&) {
    return kNeedsWholeProgram;
  } catch (const std::bad_alloc&) {
    Say("out of memory");
    return 1;
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      Say("the machine has no room for another thread (ulimit -u, -v)");
      return 1;
    }
    Say(kFault, error.what());
  } catch (const std::exception& error) {
    Say(kFault, error.what());
  }
  return 2;
}

// Exit handlers are for what tools add to a run that went well (profilers, sanitizers). Otherwise
// they are skipped: where memory is limited, OpenBLAS's handler waits for a thread that waits for
// memory.
int End(int status) noexcept {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (status != 0 || !ran_for_real) {
    std::fflush(nullptr);
    _exit(status);
  }
#endif
  return status;
}

// Called where nothing can catch an exception, as when there is no memory left even for
// destructors.
[[noreturn]] void OnTerminate() noexcept {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  const bool is_full = type != nullptr && *type == typeid(std::bad_alloc);
  Say(is_full ? "out of memory" : "a fault of rehearse itself, please report it: ",
      is_full           ? ""
      : type != nullptr ? type->name()
                        : "std::terminate()");
  _exit(is_full ? 1 : 2);
}

}  // namespace
}  // namespace rehearse

int main(int count, char** values) {
  rehearse::OccupyClosedStreams();
  rehearse::EndOnSignals();
  std::set_terminate(rehearse::OnTerminate);
  rehearse::KeepFreedMemory();
  int status = 0;
  try {
    status = rehearse::Dispatch({values + 1, values + count});
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      rehearse::Say("cannot write to standard output");
      status = 1;
    }
  } catch (...) {
    status = rehearse::SayWhatWasThrown();
  }
  return rehearse::End(status);
}
