EXECUTE check_run(:trial);
EXECUTE archive(:trial, 0, 'TRAINING', :step);
EXECUTE lock_summary(:trial);
EXECUTE find(:step, :trial, 'TRAINING', 'training');
EXECUTE add(:trial, 0, :body, :step, 'TRAINING', 'training');
EXECUTE summarise(:trial, :step, :summary, NULL);
