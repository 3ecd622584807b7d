// Logs of trainings.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/logs/training/training_log.h"

namespace rehearse {
namespace {

void ReadTrainingLogText(std::string_view input) {
  const TrainingLog log = ReadTrainingLog(input, "run.log");
  log.Median();
  log.Share(0.1);
}

std::vector<std::string> TrainingLogSeeds() {
  return {
      " iteration        2/     9 | elapsed time per iteration (ms): 1234.5 | loss: 1.0E+01 |\n"
      " iteration        3/     9 | elapsed time per iteration (ms): 1230.5 | loss: 1.0E+01 |\n",
      "\033[31mstep:  1 \033[32mloss: 12.2 \033[34mtps: 1,234 \033[36mmfu: 1.2%\033[39m\n",
      "completed step: 3, seconds: 0.5, TFLOP/s/device: 3.2, loss: 1.0\n",
      "iteration: 1 / 9 | time_per_iteration_ms: 3.2K | tokens_per_sec: 1.2M\n",
      "{'loss': 1.0, 'tokens_per_second_per_gpu': 123.4}\n"
      " 10%|#  | 1/10 [00:08<01:15,  8.34s/it]\r 20%|## | 2/10 [00:16<01:06,  1.20it/s]\n"
      "{'train_runtime': 12.5, 'train_samples_per_second': 3.2}\n"};
}

std::vector<std::string> TrainingLogWords() {
  return {"CurrSamplesPerSec=",
          "global_step=",
          "train_step_timing in s: ",
          "Step 3 | loss:1 ",
          "1e308",
          "nan",
          "tokens_per_second_per_gpu:",
          ",,,",
          "K",
          "\r",
          "[rank0]:",
          "\n"};
}

const FuzzTargetRow kTrainingLogRow({"training_log", ReadTrainingLogText, TrainingLogSeeds,
                                     TrainingLogWords});

}  // namespace
}  // namespace rehearse
