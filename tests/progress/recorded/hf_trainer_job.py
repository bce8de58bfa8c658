"""The jobs behind hf_trainer_*.bytes: hf_trainer_job.py FOLDER STEPS [LEARNING_RATE]. Trains a
network of one layer for STEPS steps, evaluates, and goes on from a checkpoint in FOLDER.
"""

import sys
import time

import torch
from transformers import Trainer, TrainingArguments


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)

    def forward(self, x, labels):
        time.sleep(0.01 if self.training else 0)
        logits = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, index):
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return {"x": x, "labels": int(x.sum() > 0)}


def main():
    folder, steps = sys.argv[1], int(sys.argv[2])
    rate = float(sys.argv[3]) if len(sys.argv) > 3 else 0.01
    torch.manual_seed(1)
    arguments = TrainingArguments(
        output_dir=folder, max_steps=steps, per_device_train_batch_size=8, learning_rate=rate,
        logging_steps=5, eval_strategy="steps", eval_steps=20, save_steps=20, use_cpu=True,
        dataloader_num_workers=0, report_to=[], disable_tqdm=False)
    trainer = Trainer(model=Net(), args=arguments, train_dataset=Data(), eval_dataset=Data())
    trainer.train(resume_from_checkpoint="resume" in sys.argv)


if __name__ == "__main__":
    main()
