#include "real/cuda/step_graph.h"

#include <utility>

namespace rehearse {

StepGraph::StepGraph(const CudaRuntime& cuda, std::vector<CudaStream> streams,
                     const std::function<void()>& launch)
    : cuda_(cuda), streams_(std::move(streams)), done_(MakeEvent(cuda, EventUse::kOrder)) {
  for (size_t i = 0; i < streams_.size(); ++i) joins_.push_back(MakeEvent(cuda, EventUse::kOrder));
  CudaStream first = streams_.front();
  CudaGraph captured = nullptr;
  cuda_.StreamBeginCapture(first, CaptureMode::kThreadLocal);
  try {
    cuda_.EventRecord(joins_.front().get(), first);
    for (size_t i = 1; i < streams_.size(); ++i)
      cuda_.StreamWaitEvent(streams_[i], joins_.front().get(), 0);
    launch();
    JoinAll();
  } catch (...) {
    // A stream stays in its capture until that ends, well or not.
    if (cuda_.StreamEndCapture.Status(first, &captured) == 0) graph_ = {cuda_, captured};
    throw;
  }
  cuda_.StreamEndCapture(first, &captured);
  graph_ = {cuda_, captured};
  CudaGraphExec executable = nullptr;
  cuda_.GraphInstantiate(&executable, captured, 0);
  executable_ = {cuda_, executable};
}

void StepGraph::JoinAll() const {
  for (size_t i = 1; i < streams_.size(); ++i) {
    cuda_.EventRecord(joins_[i].get(), streams_[i]);
    cuda_.StreamWaitEvent(streams_.front(), joins_[i].get(), 0);
  }
}

void StepGraph::Launch() const {
  cuda_.GraphLaunch(executable_.get(), streams_.front());
  cuda_.EventRecord(done_.get(), streams_.front());
}

bool StepGraph::IsDone() const {
  const int status = cuda_.EventQuery.Status(done_.get());
  if (status != 0 && status != kCudaNotReady) cuda_.EventQuery.Fail(status);
  return status == 0;
}

}  // namespace rehearse
